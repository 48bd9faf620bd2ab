"""Constants, each once per graph.

A lowered program repeats the same shapes, axes and scalars hundreds of times; a node for each
would double the size of the graph. Small constants are told apart by value, large ones by
identity.
"""

import weakref
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.ops import memo, modes
from lowering.targets import Mode

# Constants above this size (in bytes) are not worth hashing.
_BY_VALUE_BYTES = 4096
_EAGER_ENTRIES = 4096

_eager_small: dict[Any, tf.Tensor] = {}
_eager_large: dict[int, tf.Tensor] = {}


def constant(value: Any, dtype: Any = None) -> tf.Tensor:
    """A tensor with a known value, shared by all that ask for it in the same graph.

    Args:
      value: a scalar or array; it must not be changed later.
      dtype: a NumPy or TensorFlow dtype; that of `value` if None.
    """
    if isinstance(dtype, tf.DType):
        dtype = dtype.as_numpy_dtype
    array = np.asarray(value, dtype)
    by_value = array.nbytes <= _BY_VALUE_BYTES
    key = (array.dtype, array.shape, array.tobytes()) if by_value else id(value)
    if modes.current() is Mode.EAGER:
        return _eager_by_value(key, array) if by_value else _eager_by_identity(value, array)
    return memo.once(("constant", key), lambda: _outside_of_scopes(array), value)


def _outside_of_scopes(array: np.ndarray) -> tf.Tensor:
    """A constant outside of all control flow and scopes, so that every later user can reach it."""
    with tf.control_dependencies(None), tf.name_scope(""):
        return tf.constant(array)


def integers(values: Any) -> tf.Tensor:
    """A vector of axes, sizes or positions as an int32 constant (int64 if one needs it)."""
    array = np.asarray(values, np.int64)
    fits = not array.size or np.abs(array).max() <= np.iinfo(np.int32).max
    return constant(array, np.int32 if fits else np.int64)


def _eager_by_value(key: Any, array: np.ndarray) -> tf.Tensor:
    if key not in _eager_small:
        while len(_eager_small) >= _EAGER_ENTRIES:
            _eager_small.pop(next(iter(_eager_small)))
        _eager_small[key] = tf.constant(array)
    return _eager_small[key]


def _eager_by_identity(value: Any, array: np.ndarray) -> tf.Tensor:
    if id(value) not in _eager_large:
        try:
            weakref.finalize(value, _eager_large.pop, id(value), None)
        except TypeError:  # Such as a list, which nobody will ask for again.
            return tf.constant(array)
        _eager_large[id(value)] = tf.constant(array)
    return _eager_large[id(value)]
