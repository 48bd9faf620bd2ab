"""Advice for arguments that JAX does not take for arrays."""

from typing import Any

import jax
import numpy as np
import tensorflow as tf

_ARRAYS = (tf.Tensor, tf.Variable, np.generic, np.ndarray, jax.Array)

# Classes of TensorFlow and NumPy that contain arrays, and how to get arrays from them.
_INSTEAD = (
    (tf.RaggedTensor, "give its to_tensor(), and its row_lengths() where they are needed"),
    (tf.SparseTensor, "give tf.sparse.to_dense(...) of it, or its indices and values"),
    (tf.IndexedSlices, "give tf.convert_to_tensor(...) of it"),
    (tf.TensorArray, "give its stack()"),
    (tf.data.Dataset, "call the function on each of its elements"),
    (np.ma.MaskedArray, "give its filled(value), or its data and its mask as two arrays"),
)


def kind(value: Any) -> str:
    """What messages call the type of a value: the dtype of an array, or the name of a class."""
    is_array = isinstance(value, _ARRAYS) and not isinstance(value, np.ma.MaskedArray)
    return value.dtype.name if is_array else type(value).__name__


def is_refused(value: Any) -> bool:
    """Whether a value has shape and dtype, and yet is no array: a part of it would be lost."""
    return isinstance(value, tuple(kind for kind, _ in _INSTEAD))


def instead(value: Any) -> str:
    """What to write in place of a value that is no array, as the end of a message."""
    for of_kind, text in _INSTEAD:
        if isinstance(value, of_kind):
            return f"; {text}"
    if isinstance(value, _ARRAYS):
        return ""
    if hasattr(value, "__array__"):
        return "; give np.asarray(...) of it"
    if hasattr(value, "toarray"):
        return "; give its toarray()"
    return "; what is no array is fixed beforehand, as by functools.partial(fun, name=value)"
