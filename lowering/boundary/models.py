"""Dtypes of inputs, outputs and parameters that differ between an exported model and JAX.

TensorFlow has next to no kernels for numbers of eight bits or fewer, and its graph passes do not
know all of their dtypes. So a model takes, returns and keeps them in a wider dtype, and JAX casts
between the two. A PRNG key becomes its key data, an array of uint32 with one more dimension. For
runtimes other than TensorFlow, complex numbers have a last dimension for their two parts, and
bfloat16 is float32.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.arrays import narrow_numbers
from lowering.avals import is_key, real_dtype
from lowering.boundary import tensors
from lowering.narrow_formats import HAS_CAST, NARROW
from lowering.ops.dtypes import FLOAT0
from lowering.targets import TF, Target

# The highest rank of what kernels take apart.
_UNSTACKED_RANK = 5

# The dtypes that models have in place of those of eight bits or fewer.
_STORAGE = {dtype: np.dtype(TF.storage[dtype.name]) for dtype in NARROW}


def of_argument(dtype: Any, target: Target) -> np.dtype:
    """The dtype of the input or output of a model in place of one of JAX's."""
    return _STORAGE.get(dtype, dtype) if target.is_consumer else dtype


def of_parameter(dtype: Any, target: Target) -> np.dtype:
    """The dtype of the variable of a model in place of one of JAX's."""
    has_cast = dtype in HAS_CAST and target.has_tensorflow_kernels
    return dtype if has_cast else _STORAGE.get(dtype, dtype)


def key_data(leaf: Any) -> Any:
    """The data of PRNG keys, which may be a `jax.ShapeDtypeStruct`; any other leaf itself."""
    if not hasattr(leaf, "dtype") or not is_key(leaf.dtype):
        return leaf
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, leaf)
    return np.asarray(jax.random.key_data(leaf))


def key_data_shape(shape: Sequence[Any], dtype: Any) -> tuple[Any, ...]:
    """A shape, which may be symbolic; that of the key data if the dtype is one of keys."""
    return (*shape, *jax_compat.key_shape(dtype)) if is_key(dtype) else tuple(shape)


def on_storage(
    fun: Callable[..., Any], dtypes: Sequence[Any], target: Target, stored: int = 0
) -> Callable[..., Any]:
    """A JAX function like `fun`, with arguments and results in the dtypes that a model has.

    Args:
      fun: a function of positional arguments.
      dtypes: the dtypes in which `fun` takes the leaves of its arguments.
      target: who will run the model.
      stored: how many of these leaves, the first ones, are numbers of their dtypes for certain.
        JAX does not run a function that has some.
    """

    def argument(x: Any, dtype: Any, is_stored: bool) -> Any:
        if is_key(dtype):
            return jax.random.wrap_key_data(x, impl=jax_compat.key_impl(dtype))
        if dtype not in _STORAGE or x.dtype == dtype:
            return x
        return narrow_numbers.as_stored(x, dtype) if is_stored else x.astype(dtype)

    def result(y: Any) -> Any:
        if hasattr(y, "dtype") and is_key(y.dtype):
            return jax.random.key_data(y)
        if getattr(y, "dtype", None) == FLOAT0:
            return jax.numpy.zeros(y.shape, np.bool_)
        if getattr(y, "dtype", None) not in _STORAGE:
            return y
        # XLA joins a conversion with what comes before it, and then integers do not wrap around.
        return jax.lax.optimization_barrier(y).astype(of_argument(y.dtype, target))

    @functools.wraps(fun, updated=())
    def in_storage(*args: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(args)
        given = [
            argument(x, dtype, i < stored)
            for i, (x, dtype) in enumerate(zip(leaves, dtypes, strict=True))
        ]
        return jax.tree_util.tree_map(result, fun(*jax.tree_util.tree_unflatten(tree, given)))

    return in_storage


def spec_of_runtime(spec: tf.TensorSpec) -> tf.TensorSpec:
    """An input of a runtime: of the parts of complex numbers, float32 in place of bfloat16."""
    if spec.dtype.is_complex:
        return tf.TensorSpec([*spec.shape, 2], spec.dtype.real_dtype, spec.name)
    return tf.TensorSpec(spec.shape, tf.float32, spec.name) if spec.dtype == tf.bfloat16 else spec


def of_runtime(x: np.ndarray) -> np.ndarray:
    """An array as a runtime takes it; see `spec_of_runtime`."""
    if np.iscomplexobj(x):
        return np.stack([x.real, x.imag], -1)
    return x.astype(np.float32) if x.dtype == tf.bfloat16.as_numpy_dtype else x


def from_runtime(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """An input of a runtime as the function takes it."""
    return tf.complex(*_unstacked(x)) if dtype.is_complex else tf.cast(x, dtype)


def _unstacked(x: tf.Tensor) -> list[tf.Tensor]:
    """The two elements of the last dimension; in kernels it is not beyond the fifth."""
    sizes = x.shape[:-1]
    if len(sizes) < _UNSTACKED_RANK or not sizes.is_fully_defined():
        return tf.unstack(x, 2, axis=-1)
    flat = tf.reshape(x, [sizes.num_elements(), 2])
    return [tf.reshape(part, sizes) for part in tf.unstack(flat, axis=-1)]


def to_runtime(x: tf.Tensor) -> tf.Tensor:
    """A result of the function as a runtime returns it."""
    if x.dtype.is_complex:
        return tf.stack(tensors.parts(x), -1)
    if x.dtype != tf.bfloat16:
        return x
    before = tensors.before_cast(x)
    return tf.cast(x, tf.float32) if before is None else before


def as_logical(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array of a logical dtype from what a runtime has in its place; see `Entry.dtypes`."""
    if dtype.kind == "c":
        return np.ascontiguousarray(x, real_dtype(dtype)).view(dtype)[..., 0]
    return x.astype(dtype)
