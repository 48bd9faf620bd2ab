"""JAX dtypes and TensorFlow dtypes, and the dtype to compute in where TensorFlow lacks a kernel."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat, targets

BOOL = (np.bool_,)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
INTEGER = SIGNED + UNSIGNED
LOW_PRECISION = (np.float16, ml_dtypes.bfloat16)
WIDE_FLOAT = (np.float32, np.float64)
FLOAT = (*LOW_PRECISION, *WIDE_FLOAT)
COMPLEX = (np.complex64, np.complex128)

UINT32 = np.dtype(np.uint32)
UNSIGNED_32 = (UINT32,)

FLOAT0 = jax.dtypes.float0

# The nearest dtype that holds every value and in which arithmetic, rounded back once, gives the
# result that the narrow type asks for.
_WIDER = {
    tf.bool: tf.int32,
    tf.int8: tf.int32,
    tf.uint8: tf.int32,
    tf.int16: tf.int32,
    tf.uint16: tf.int32,
    tf.int32: tf.int64,
    tf.uint32: tf.int64,
    tf.float16: tf.float32,
    tf.bfloat16: tf.float32,
    tf.float32: tf.float64,
    tf.complex64: tf.complex128,
}

_SIGNED_OF_SIZE = {1: tf.int8, 2: tf.int16, 4: tf.int32, 8: tf.int64}
_UNSIGNED_OF_SIZE = {1: tf.uint8, 2: tf.uint16, 4: tf.uint32, 8: tf.uint64}

# A dtype of the same width whose bits can be moved in place of those of the key.
_CARRIER = {
    tf.uint8: tf.int8,
    tf.uint16: tf.int16,
    tf.uint32: tf.int32,
    tf.uint64: tf.int64,
    tf.float16: tf.int16,
    tf.bfloat16: tf.int16,
}


@functools.cache
def _storages(target: targets.Target) -> Mapping[Any, np.dtype]:
    """The storage dtypes of a target, by the dtypes in whose place they are.

    Complex numbers are not among them: a pass splits them before.
    """
    names = {jnp.dtype(dtype): name for dtype, name in target.storage.items()}
    return {dtype: np.dtype(name) for dtype, name in names.items() if dtype.kind != "c"}


def to_tf(dtype: Any) -> tf.DType:
    """The dtype of tensors that have values of a JAX dtype in a program: its storage dtype.

    `float0`, the dtype of gradients of integers, is stored as False, as in programs that JAX
    compiles. PRNG keys are stored as their key data, which are uint32, and numbers of eight bits or
    fewer in a wider dtype; see `passes.legalize.narrow_numbers`.

    Raises:
      TypeError: if there is none.
    """
    if is_narrow(dtype):
        return tf.dtypes.as_dtype(storage(dtype))
    of_argument = to_tf_argument(dtype)
    return tf.dtypes.as_dtype(storage(UINT32)) if avals.is_key(dtype) else of_argument


@functools.cache
def to_tf_argument(dtype: Any) -> tf.DType:
    """The dtype of arguments and results of a JAX dtype.

    Raises:
      TypeError: if TensorFlow has no such dtype.
    """
    if dtype == FLOAT0:
        return tf.bool
    if avals.is_key(dtype):
        return tf.uint32
    if jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        return to_tf_argument(jax_compat.physical_dtype(dtype))
    try:
        return tf.dtypes.as_dtype(dtype)
    except TypeError:
        raise TypeError(
            f"TensorFlow has no dtype for JAX's {np.dtype(dtype).name}. Pass float32 across the "
            "boundary and convert it inside of the JAX function"
        ) from None


def is_narrow(dtype: Any) -> bool:
    """Whether values of a dtype are stored in a wider one."""
    return dtype in _storages(targets.current())


def storage(dtype: Any) -> np.dtype:
    """The storage dtype of a narrow dtype; any other dtype itself."""
    return _storages(targets.current()).get(dtype, dtype)


def wider(dtype: tf.DType) -> tf.DType | None:
    """A dtype in which arithmetic of `dtype` can be done exactly enough, or None."""
    return _WIDER.get(dtype)


def carrier(dtype: tf.DType) -> tf.DType | None:
    """A dtype of the same width as `dtype`, to move its bits in, or None."""
    return _CARRIER.get(dtype)


def signed(dtype: tf.DType) -> tf.DType:
    """The signed integers of the same width."""
    return _SIGNED_OF_SIZE[dtype.size]


def unsigned(dtype: tf.DType) -> tf.DType:
    """The unsigned integers of the same width."""
    return _UNSIGNED_OF_SIZE[dtype.size]
