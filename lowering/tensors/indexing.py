"""Index arithmetic that slices, gathers and scatters share.

Indices are NumPy arrays where they are known at lowering time, and tensors where they are not. The
functions here take both, and return an array wherever their operands are known.

An index counts along one axis. A position counts elements of a whole array in row-major order.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from lowering import avals, targets
from lowering.context import Context
from lowering.ops import cast, constant, emit, integers
from lowering.ops.values import tensor
from lowering.tensors import movement
from lowering.tensors.movement import Dim, Shape

Index: TypeAlias = np.ndarray | tf.Tensor

INT32_MAX = np.iinfo(np.int32).max

# The most dimensions that TensorFlow's kernels index by vectors.
MAX_DEPTH = 7


def _are_known(*indices: Index) -> bool:
    return all(isinstance(index, np.ndarray) for index in indices)


def index_tensor(index: Index) -> tf.Tensor:
    """Indices as a tensor; known ones of int32 if that holds them."""
    return index if isinstance(index, tf.Tensor) else integers(index)


def columns(index: Index) -> list[Index]:
    """The elements of index vectors, one array for each element; vectors lie along the last axis.

    Arithmetic on each is several times faster than on the vectors: kernels are slow where a short
    last dimension is broadcast or reduced.
    """
    if isinstance(index, np.ndarray):
        return [index[..., i] for i in range(index.shape[-1])]
    if index.dtype == tf.int64:
        index = _fitting(index)
    if index.shape[-1] == 1:
        return [tf.raw_ops.Squeeze(input=index, axis=[-1])]
    return tf.raw_ops.Unpack(value=index, num=index.shape[-1], axis=-1)


def vectors(parts: Sequence[Index]) -> Index:
    """Index vectors with these elements; the inverse of `columns`."""
    if _are_known(*parts):
        return np.stack(parts, axis=-1)
    parts = [index_tensor(part) for part in parts]
    if len(parts) == 1:
        return tf.raw_ops.ExpandDims(input=parts[0], axis=constant(-1, np.int32))
    return tf.raw_ops.Pack(values=parts, axis=-1)


def clamp(ctx: Context, index: Index, last: Dim) -> Index:
    """Indices of any integer dtype, clamped to 0 ... `last`.

    They are int64 if they are known or were int64 before, where the target has that, else int32.
    """
    last = ctx.size(last)
    if not isinstance(index, tf.Tensor):
        if isinstance(last, int):
            return np.asarray(np.clip(index.astype(object), 0, last), np.int64)
        index = constant(np.asarray(np.clip(index.astype(object), 0, INT32_MAX), np.int32))
    if index.dtype.is_unsigned and isinstance(last, int) and index.dtype.max <= last:
        return cast(index, tf.int32)
    index = index if index.dtype.is_unsigned and index.dtype.size >= 4 else _fitting(index)
    dtype = index.dtype
    last = movement.scalar(last, dtype)
    if dtype.is_unsigned:
        return cast(tf.raw_ops.Minimum(x=index, y=last), tf.int32)
    return emit("ClipByValue", index, constant(0, dtype), last)


def signed(index: Index) -> Index:
    """Indices in a signed dtype. Those that are too high for an array remain so."""
    if not isinstance(index, tf.Tensor):
        return np.asarray(np.clip(index.astype(object), -1, INT32_MAX), np.int64)
    if index.dtype in (tf.uint32, tf.uint64):
        index = tf.raw_ops.Minimum(x=index, y=constant(INT32_MAX, index.dtype))
    return _fitting(index)


def _fitting(index: tf.Tensor) -> tf.Tensor:
    """Indices in int64 if they are of that, and the target has it, else in int32."""
    is_wide = index.dtype == tf.int64 and targets.current().has_64_bits
    return index if is_wide else cast(index, tf.int32)


def are_same(parts: Sequence[Index], clamped: Sequence[Index]) -> Index:
    """Whether clamping has left an index vector as it was, for each vector."""
    result: Index = np.array(True)
    for part, moved in zip(parts, clamped, strict=True):
        result = _both(result, _equal(part, moved))
    return result


def _equal(index: Index, clamped: Index) -> Index:
    if _are_known(index, clamped):
        return np.asarray(index == clamped)
    if isinstance(index, np.ndarray):
        index = signed(index)
    index, clamped = index_tensor(index), index_tensor(clamped)
    if index.dtype in (tf.uint32, tf.uint64):
        clamped = cast(clamped, index.dtype)
    else:
        index = cast(index, clamped.dtype)
    return tf.raw_ops.Equal(x=index, y=clamped)


def _both(x: Index, y: Index) -> Index:
    if _are_known(x, y):
        return np.asarray(x & y)
    for known, other in ((x, y), (y, x)):
        if isinstance(known, np.ndarray) and known.all():
            return other
    return tf.raw_ops.LogicalAnd(x=tensor(x), y=tensor(y))


def linear(ctx: Context, parts: Sequence[Index], shape: Shape, axes: Sequence[int]) -> Index:
    """Positions from in-bounds indices along each of `axes`; those along other axes are zero."""
    is_large = avals.is_static(shape) and math.prod(shape) > INT32_MAX
    position: Index = np.array(0)
    for part, axis in zip(parts, axes, strict=True):
        if is_large and isinstance(part, tf.Tensor):
            part = cast(part, tf.int64)
        position = add(position, _multiply(ctx, part, math.prod(shape[axis + 1 :])))
    return position


def _multiply(ctx: Context, index: Index, stride: Dim) -> Index:
    if isinstance(stride, int) and isinstance(index, np.ndarray):
        return np.asarray(index * stride)
    if isinstance(stride, int) and stride == 1:
        return index
    index = index_tensor(index)
    return tf.raw_ops.Mul(x=index, y=movement.scalar(ctx.size(stride), index.dtype))


def starts(ctx: Context, parts: Mapping[int, Index], rank: int) -> list[int | tf.Tensor]:
    """The position at which a single window begins, along each of `rank` axes.

    For some axes `parts` has the index, in an array of one element; along the others it is zero.
    """
    result: list[int | tf.Tensor] = [0] * rank
    for axis, part in parts.items():
        known = isinstance(part, np.ndarray)
        result[axis] = int(part.item()) if known else movement.reshape(ctx, part, ())
    return result


def steps(ctx: Context, shape: Shape, axis: int, size: Dim) -> Index:
    """The positions of the first `size` elements along an axis.

    They have a dimension of size one for each axis that follows, to be broadcast along it.
    """
    stride = math.prod(shape[axis + 1 :])
    expanded = [-1] + [1] * (len(shape) - axis - 1)
    if isinstance(size, int) and isinstance(stride, int):
        return np.reshape(np.arange(size, dtype=np.int64) * stride, expanded)
    limit, stride = movement.scalar(ctx.size(size), tf.int32), ctx.size(stride)
    indices = tf.raw_ops.Range(
        start=constant(0, np.int32), limit=limit, delta=constant(1, np.int32)
    )
    return tf.raw_ops.Reshape(tensor=indices * stride, shape=integers(expanded))


def window(ctx: Context, shape: Shape, sizes: Shape) -> Index:
    """The positions of the elements of a window of `sizes` at the origin, as a vector."""
    position: Index = np.zeros([1] * len(shape), np.int64)
    for axis, size in enumerate(sizes):
        if size != 1:
            position = add(position, steps(ctx, shape, axis, size))
    return reshape(ctx, position, (math.prod(sizes),))


def add(x: Index, y: Index) -> Index:
    """The sum of two arrays of positions, which broadcast as in NumPy."""
    if _are_known(x, y):
        return np.asarray(x + y)
    for known, other in ((x, y), (y, x)):
        if isinstance(known, np.ndarray) and not known.any() and known.size == 1:
            return other
    x, y = index_tensor(x), index_tensor(y)
    dtype = tf.int64 if tf.int64 in (x.dtype, y.dtype) else tf.int32
    return tf.raw_ops.AddV2(x=cast(x, dtype), y=cast(y, dtype))


def reshape(ctx: Context, index: Index, shape: Shape) -> Index:
    """`index` with the dimensions `shape`."""
    if isinstance(index, np.ndarray) and avals.is_static(shape):
        return index.reshape(shape)
    return movement.reshape(ctx, index_tensor(index), shape)


def broadcast(ctx: Context, index: Index, shape: Shape) -> Index:
    """`index` broadcast to the dimensions `shape`."""
    if isinstance(index, np.ndarray) and avals.is_static(shape):
        return np.broadcast_to(index, shape)
    return movement.broadcast(ctx, index_tensor(index), shape)


def transpose(ctx: Context, x: Index, order: Sequence[int]) -> Index:
    """`x` with its axes in another order."""
    return x.transpose(order) if isinstance(x, np.ndarray) else movement.transpose(ctx, x, order)
