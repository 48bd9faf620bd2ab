"""TensorFlow gradients of converted functions, through `jax.vjp`.

TensorFlow asks for the gradient lazily; only then does JAX differentiate the function, and the
result is lowered like any other function. JAX thus does all differentiation, so custom
derivatives are respected, and gradients of gradients work.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import tensorflow as tf

from lowering.avals import is_static

# A lowered function, on flat tensors.
Lower = Callable[..., list[tf.Tensor]]


class Vjp:
    """The vector-Jacobian product of a JAX function, converted when it is first asked for.

    Attributes:
      active: the positions of the arguments that have a gradient.
      active_out: the positions of the results that have a cotangent.
    """

    def __init__(
        self,
        fun_jax: Callable[..., Any],
        in_tree: Any,
        avals: Sequence[Any],
        out_avals: Sequence[Any],
        convert: Callable[..., Callable[..., Any]],
    ):
        """Describes the product; nothing is traced yet.

        Args:
          fun_jax: a JAX function.
          in_tree: the structure of its arguments, as `(args, kwargs)`.
          avals: the abstract values of the arguments, flat.
          out_avals: the abstract values of the results, flat.
          convert: `lowering.convert`, for the same target and constraints as `fun_jax`.
        """
        self._fun_jax = fun_jax
        self._in_tree = in_tree
        self._avals = avals
        self._out_avals = out_avals
        self._convert = convert
        self.active = _differentiable(avals)
        self.active_out = _differentiable(out_avals)

    def __call__(
        self, operands: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]
    ) -> list[tf.Tensor | None]:
        """The gradient of each argument, None for those that have none.

        Args:
          operands: the arguments, flat.
          cotangents: the gradients of the results, flat.
        """
        gradients: list[tf.Tensor | None] = [None] * len(operands)
        if self.active and self.active_out:
            # TensorFlow's gradient of a complex value is the conjugate of JAX's.
            active_cotangents = [_conjugate(cotangents[i]) for i in self.active_out]
            pulled_back = self._converted(list(operands), active_cotangents)
            for i, gradient in zip(self.active, pulled_back, strict=True):
                gradients[i] = _conjugate(gradient)
        return gradients

    @functools.cached_property
    def _converted(self) -> Callable[..., Any]:
        out_avals = [self._out_avals[i] for i in self.active_out]
        shapes = ([_spec(aval) for aval in self._avals], [_spec(aval) for aval in out_avals])
        return self._convert(self._vjp, polymorphic_shapes=shapes)

    def _vjp(self, operands: Sequence[jax.Array], cotangents: Sequence[jax.Array]) -> Any:
        def fun(*active_operands):
            full = list(operands)
            for i, operand in zip(self.active, active_operands, strict=True):
                full[i] = operand
            args, kwargs = jax.tree_util.tree_unflatten(self._in_tree, full)
            results = jax.tree_util.tree_leaves(self._fun_jax(*args, **kwargs))
            return [jnp.asarray(results[i]) for i in self.active_out]

        _, pullback = jax.vjp(fun, *(operands[i] for i in self.active))
        return pullback(list(cotangents))


def differentiable(lower: Lower, vjp: Vjp) -> Lower:
    """`lower` with the TensorFlow gradient `vjp`."""

    @tf.custom_gradient
    def fun_tf(*tensors):
        return lower(*tensors), lambda *cotangents: vjp(tensors, cotangents)

    def flat(*tensors):
        # custom_gradient takes a list of one result apart.
        results = fun_tf(*tensors)
        return list(results) if isinstance(results, list | tuple) else [results]

    return flat


def prevent(results: Sequence[tf.Tensor], name: str) -> list[tf.Tensor]:
    """Results of the conversion of `name` of which TensorFlow refuses to compute a gradient."""
    message = (
        f"The conversion of {name} was made with with_gradient=False, so that TensorFlow cannot "
        "differentiate it. Use with_gradient=True."
    )
    return [tf.raw_ops.PreventGradient(input=y, message=message) for y in results]


def _differentiable(avals: Sequence[Any]) -> list[int]:
    return [i for i, aval in enumerate(avals) if jnp.issubdtype(aval.dtype, jnp.inexact)]


def _conjugate(x: tf.Tensor) -> tf.Tensor:
    return tf.math.conj(x) if x.dtype.is_complex else x


def _spec(aval: Any) -> str | None:
    """The shape specification of a shape with symbolic dimensions; None if it has none."""
    if is_static(aval.shape):
        return None
    return f"({', '.join(str(dim) for dim in aval.shape)},)"
