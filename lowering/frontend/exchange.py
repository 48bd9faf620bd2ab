"""Arrays of JAX as tensors and back, in the same memory wherever both sides can share it."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat, narrow_formats
from lowering.ops import dtypes, modes


def run(fun: Callable[..., Any], arrays: Sequence[Any]) -> list[jax.Array]:
    """The results of a function of flat tensors on arrays, op by op, whatever is traced now."""
    with modes.eagerly(), jax_compat.outside_of_tracing():
        return list(map(to_array, fun(*map(to_tensor, arrays))))


def to_tensor(array: Any) -> tf.Tensor:
    """An array of JAX or NumPy as a tensor."""
    if isinstance(array, jax.Array) and _is_shared(array.dtype) and len(array.devices()) == 1:
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    return tf.constant(np.asarray(array), dtypes.to_tf_argument(array.dtype))


def to_array(tensor: tf.Tensor) -> jax.Array:
    """A tensor as an array of JAX."""
    if _is_shared(tensor.dtype.as_numpy_dtype):
        return jax.dlpack.from_dlpack(tensor)
    return jax.numpy.asarray(tensor.numpy())


def _is_shared(dtype: Any) -> bool:
    """Whether DLPack has a dtype in both libraries."""
    return dtype not in narrow_formats.NARROW and not avals.is_key(dtype)
