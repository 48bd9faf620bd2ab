"""`call_tf`: TensorFlow functions as JAX functions."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat
from lowering.frontend import arguments, call_primitive, callees, exchange, refused
from lowering.frontend.callees import Declared, Function, Origin
from lowering.ops import dtypes


class _Inferred:
    """Says that TensorFlow is to find out what a function returns."""

    def __repr__(self) -> str:
        return "inferred"


INFERRED = _Inferred()


def call_tf(
    fun_tf: Callable[..., Any],
    *,
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: Any = INFERRED,
) -> Callable[..., Any]:
    """Turns a TensorFlow function into a JAX function.

    The result takes and returns pytrees. Called with arrays, it runs `fun_tf` at once, op by op; on
    a CPU or GPU the two libraries share the memory of arrays. Inside of `jax.jit`, `jax.lax.scan`
    and the like, XLA compiles `fun_tf` as a part of the program, if it can. If not, each run of the
    program calls back into Python, and a warning says so.

    `jax.grad`, `jax.jvp`, `jax.linearize` and `jax.vmap` apply, in any order and repeatedly.
    TensorFlow computes the derivatives, so custom gradients are respected. `jax.vmap` runs
    `fun_tf` for all elements at once (`tf.vectorized_map`), or in turn where TensorFlow cannot.
    `lowering.convert` puts the ops of `fun_tf` into its graph.

    `fun_tf` may read variables. A compiled program has the values that they had when it was
    compiled, and JAX takes no derivatives by them: pass as arguments what changes. TensorFlow's
    gradients of a converted function are by the variables, too. Writing to variables is for calls
    op by op.

    Args:
      fun_tf: a function of tensors, or of pytrees of them, such as one of a loaded SavedModel.
      has_side_effects: whether JAX has to run each call, even if its results are not used.
      ordered: whether calls have to run in the order of the program; they cannot be mapped then.
      output_shape_dtype: what `fun_tf` returns, as a pytree of objects with `shape` and `dtype`.
        Shapes may be symbolic. By default TensorFlow finds out.

    Returns:
      The JAX function of positional and keyword arguments: arrays, NumPy arrays, Python scalars
      and tensors, of any dtype that TensorFlow has. As in JAX, 64-bit values are taken as 32-bit
      ones unless `JAX_ENABLE_X64` is set. It raises
        TypeError: for an argument that is no array, such as a string;
        ValueError: for a result that is none; for results other than `output_shape_dtype`; and
          while JAX traces, for results of shapes that TensorFlow does not know, and for a
          function that writes to variables, once it is compiled.

    Raises:
      TypeError: if `fun_tf` is not callable.
    """
    if not callable(fun_tf):
        raise TypeError(f"call_tf takes a function of TensorFlow, not {type(fun_tf).__name__}")
    origin = Origin(fun_tf)
    declared = _declared(output_shape_dtype)
    effect = "ordered" if ordered else "unordered" if has_side_effects else None

    def fun_jax(*args: Any, **kwargs: Any) -> Any:
        paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
        operands = [_operand(origin.name, path, leaf) for path, leaf in paths]
        settings = tuple(jax_compat.settings().items())
        function = Function(origin, tree, settings, declared)
        is_traced = any(isinstance(x, jax.core.Tracer) for x in operands)
        if is_traced or jax_compat.in_transformation():
            results, out_tree = call_primitive.call(function, operands, effect)
        else:
            with callees.observed(function) as structures:
                results = exchange.run(function, operands)
            (out_tree,) = structures
        return jax.tree_util.tree_unflatten(out_tree, results)

    return functools.wraps(fun_tf, updated=())(fun_jax)


def _declared(output_shape_dtype: Any) -> Declared | None:
    """What the user says of results.

    Raises:
      TypeError: for a leaf without a shape or a dtype.
    """
    if output_shape_dtype is INFERRED:
        return None
    leaves, tree = jax.tree_util.tree_flatten(output_shape_dtype)
    for leaf in leaves:
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise TypeError(
                "output_shape_dtype is a pytree of objects with shape and dtype, such as "
                f"jax.ShapeDtypeStruct, not of {type(leaf).__name__}"
            )
    structs = [(tuple(x.shape), jax.dtypes.canonicalize_dtype(x.dtype)) for x in leaves]
    return Declared(tree, tuple(jax.core.ShapedArray(*struct) for struct in structs))


def _operand(name: str, path: Any, leaf: Any) -> Any:
    """A leaf of the arguments as an array.

    Raises:
      TypeError: if it is none, or has a dtype that TensorFlow lacks.
    """
    detail = "pass numbers or booleans"
    try:
        if getattr(leaf, "dtype", None) == dtypes.FLOAT0:
            return np.zeros(np.shape(leaf), np.bool_)
        if isinstance(leaf, tf.Tensor | tf.Variable):
            leaf = leaf.numpy()
        array = leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf)
        if avals.is_key(array.dtype):
            detail = "pass jax.random.key_data(key)"
            raise TypeError
        dtypes.to_tf_argument(array.dtype)
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        raise TypeError(
            f"argument {arguments.place(path)} of {name} has type {refused.kind(leaf)}, which "
            "call_tf cannot pass"
            + (refused.instead(leaf) if refused.is_refused(leaf) else f": {detail}")
        ) from error
    return array
