"""TensorFlow gradients of converted functions, through `jax.vjp`.

TensorFlow asks for the gradient lazily; only then does JAX differentiate the function, and the
result is lowered like any other function. JAX thus does all differentiation, so custom
derivatives are respected, and gradients of gradients work.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import tensorflow as tf

from lowering.avals import is_static

# A lowered function, on flat tensors.
Lower = Callable[..., list[tf.Tensor]]


@dataclasses.dataclass
class Vjp:
    """The vector-Jacobian product of a JAX function, converted when it is first asked for.

    Attributes:
      fun_jax: the function.
      in_tree: the structure of its arguments, as `(args, kwargs)`.
      avals: the abstract values of the arguments, flat.
      out_avals: the abstract values of the results, flat.
      convert: `lowering.convert`, for the same target and constraints as `fun_jax`.
    """

    fun_jax: Callable[..., Any]
    in_tree: Any
    avals: Sequence[Any]
    out_avals: Sequence[Any]
    convert: Callable[..., Callable[..., Any]]

    def __post_init__(self):
        # The positions of the arguments that have a gradient, and of the results.
        self._active = _differentiable(self.avals)
        self._active_out = _differentiable(self.out_avals)

    def __call__(
        self, operands: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]
    ) -> list[tf.Tensor | None]:
        """The gradient of each argument, or None; operands and cotangents are flat."""
        gradients: list[tf.Tensor | None] = [None] * len(operands)
        if self._active and self._active_out:
            # TensorFlow's gradient of a complex value is the conjugate of JAX's.
            active_cotangents = [_conjugate(cotangents[i]) for i in self._active_out]
            pulled_back = self._converted(list(operands), active_cotangents)
            for i, gradient in zip(self._active, pulled_back, strict=True):
                gradients[i] = _conjugate(gradient)
        return gradients

    @functools.cached_property
    def _converted(self) -> Callable[..., Any]:
        out_avals = [self.out_avals[i] for i in self._active_out]
        shapes = ([_spec(aval) for aval in self.avals], [_spec(aval) for aval in out_avals])
        return self.convert(self._vjp, polymorphic_shapes=shapes)

    def _vjp(self, operands: Sequence[jax.Array], cotangents: Sequence[jax.Array]) -> Any:
        def fun(*active_operands):
            full = list(operands)
            for i, operand in zip(self._active, active_operands, strict=True):
                full[i] = operand
            args, kwargs = jax.tree_util.tree_unflatten(self.in_tree, full)
            results = jax.tree_util.tree_leaves(self.fun_jax(*args, **kwargs))
            return [jnp.asarray(results[i]) for i in self._active_out]

        _, pullback = jax.vjp(fun, *(operands[i] for i in self._active))
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
