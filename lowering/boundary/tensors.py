"""Arguments and results of programs, whose numbers programs store in other dtypes.

There they have dtypes of their own, which passes promote to others. Between the two, TensorFlow can
convert some dtypes of eight bits or fewer in some modes only.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

from lowering import avals, narrow_formats, targets
from lowering.boundary import uint32
from lowering.errors import UnsupportedError
from lowering.narrow_formats import HAS_CAST
from lowering.ops import dtypes, modes, values
from lowering.ops.casts import before_narrowed, narrowed, widened
from lowering.targets import Mode

# The dtypes that TensorFlow casts to and from integers of eight bits, but XLA does not.
_CAST_INTEGER = frozenset(map(np.dtype, (ml_dtypes.int4, ml_dtypes.uint4)))
# The dtypes that XLA casts, but TensorFlow does not.
_CAST_COMPILED = frozenset(dtype for dtype in narrow_formats.FLOAT if dtype.name.endswith("fnuz"))


def split(tensors: Iterable[tf.Tensor], avals_: Sequence[Any]) -> list[tf.Tensor]:
    """The tensors of a program's values: for a value that the target splits, those of its parts."""
    return [part for x, a in zip(tensors, avals_, strict=True) for part in _split(x, a.dtype)]


def _split(x: tf.Tensor, dtype: Any) -> Sequence[tf.Tensor]:
    if avals.is_complex(dtype) and targets.current().splits("complex64"):
        return parts(x)
    return uint32.split(x) if _splits_uint32(dtype) else (x,)


def _splits_uint32(dtype: Any) -> bool:
    is_uint32 = dtype == dtypes.UINT32 or avals.is_key(dtype)
    return is_uint32 and targets.current().splits(dtypes.UINT32)


def parts(x: tf.Tensor) -> Sequence[tf.Tensor]:
    """The real and the imaginary parts of complex numbers."""
    source = values.source(x)
    is_made_of_parts = source is not None and source.type == "Complex"
    return source.inputs if is_made_of_parts else (tf.math.real(x), tf.math.imag(x))


def joined(tensors: Iterable[tf.Tensor], avals_: Sequence[Any]) -> list[tf.Tensor]:
    """The inverse of `split`; the abstract values are those of the results."""
    rest = iter(tensors)

    def value(dtype: Any) -> tf.Tensor:
        if avals.is_complex(dtype) and targets.current().splits("complex64"):
            return tf.complex(next(rest), next(rest))
        return uint32.joined(next(rest), next(rest)) if _splits_uint32(dtype) else next(rest)

    return [value(aval.dtype) for aval in avals_]


def enter(x: tf.Tensor, dtype: np.dtype) -> tf.Tensor:
    """An argument of JAX dtype `dtype` in its storage dtype.

    Raises:
      UnsupportedError: if TensorFlow cannot convert it in the current mode.
    """
    if dtype not in narrow_formats.NARROW:
        return _stored(x, dtype)
    if _has_cast(dtype):
        return tf.cast(x, dtypes.to_tf(dtype))
    if modes.current() is Mode.EAGER:
        return tf.constant(values.in_storage(x.numpy(), dtype))
    raise _boundary_error("an argument", dtype)


def _stored(x: tf.Tensor, dtype: Any) -> tf.Tensor:
    """An argument in its storage dtype; casts to 16 bits and back are left out."""
    to = dtypes.to_tf(dtype)
    before = before_cast(x, to) if to == tf.float32 and x.dtype != to else None
    return widened(x, to) if before is None else before


def before_cast(x: tf.Tensor, dtype: tf.DType | None = None) -> tf.Tensor | None:
    """The tensor of a graph that a tensor is cast from; None if it is not cast.

    What has too many dimensions for a cast is reshaped before and after it.

    Args:
      x: a tensor.
      dtype: the dtype to find a tensor of; any if None.
    """
    shapes = []
    source = values.source(x)
    while source is not None and source.type == "Reshape":
        shapes.append(source.inputs[1])
        source = values.source(source.inputs[0])
    if source is None or source.type != "Cast" or dtype not in (None, source.inputs[0].dtype):
        return None
    return functools.reduce(tf.reshape, reversed(shapes), before_narrowed(source.inputs[0]))


def shaped_alike(x: tf.Tensor) -> tf.Tensor:
    """A tensor of the same shape: what `x` is cast from, or the real parts that it is made of.

    Consumers lack the dtypes of some arguments, even where only the shape is asked for.
    """
    source = values.source(x)
    return source.inputs[0] if source is not None and source.type in ("Cast", "Complex") else x


def leave(x: tf.Tensor, dtype: np.dtype) -> tf.Tensor:
    """A result as the caller of the program gets it; the inverse of `enter`.

    Raises:
      TypeError: if TensorFlow has no such dtype.
      UnsupportedError: as `enter`.
    """
    to = dtypes.to_tf_argument(dtype)
    if dtype not in narrow_formats.NARROW:
        return narrowed(x, to)
    if _has_cast(dtype):
        return tf.cast(x, to)
    if modes.current() is Mode.EAGER:
        return tf.constant(x.numpy().astype(dtype))
    raise _boundary_error("a result", dtype)


def _has_cast(dtype):
    in_mode = _CAST_COMPILED if modes.current() is Mode.COMPILED else _CAST_INTEGER
    return dtype in HAS_CAST or dtype in in_mode


def _boundary_error(what, dtype):
    mode = "in code that XLA compiles" if modes.current() is Mode.COMPILED else "in a graph"
    wider = dtypes.storage(dtype).name
    return UnsupportedError(
        f"TensorFlow cannot convert {what} of dtype {dtype.name} {mode}. "
        f"Pass {wider} across the boundary and convert it inside of the JAX function"
    )
