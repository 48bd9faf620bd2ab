"""Index arithmetic that slices, gathers and scatters share.

Indices are NumPy arrays where they are known at lowering time and tensors where they are not. The
functions here take either, and return what is known as a NumPy array.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering import avals
from lowering.context import Context
from lowering.ops import cast, constant, integers
from lowering.ops.values import tensor
from lowering.tensors import movement

Index = np.ndarray | tf.Tensor

INT32_MAX = np.iinfo(np.int32).max


def index_tensor(index: Index) -> tf.Tensor:
    """Indices as a tensor, of int32 if that holds them."""
    return index if isinstance(index, tf.Tensor) else integers(index)


def columns(index: Index) -> list[Index]:
    """The elements of index vectors, which lie along the last dimension, apart.

    Arithmetic on each is several times faster than on the vectors: kernels are slow where a short
    last dimension is broadcast or reduced.
    """
    if isinstance(index, np.ndarray):
        return list(np.moveaxis(index, -1, 0))
    if index.shape[-1] == 1:
        return [tf.raw_ops.Squeeze(input=index, axis=[-1])]
    return tf.raw_ops.Unpack(value=index, num=index.shape[-1], axis=-1)


def vectors(parts: Sequence[Index]) -> Index:
    """Index vectors with these elements; the inverse of `columns`."""
    if not any(isinstance(part, tf.Tensor) for part in parts):
        return np.stack(parts, axis=-1)
    parts = [index_tensor(part) for part in parts]
    if len(parts) == 1:
        return tf.raw_ops.ExpandDims(input=parts[0], axis=constant(-1, np.int32))
    return tf.raw_ops.Pack(values=parts, axis=-1)


def clamp(ctx: Context, index: Index, last: Any) -> Index:
    """Indices along one axis, moved into its range.

    Args:
      ctx: the context of the rule.
      index: integers of any dtype.
      last: the highest index in range: a dimension.

    Returns:
      The indices as int64 if they are known or came so, else as int32.
    """
    last = ctx.size(last)
    if not isinstance(index, tf.Tensor):
        if isinstance(last, int):
            return np.asarray(np.clip(index.astype(object), 0, last), np.int64)
        index = constant(np.asarray(np.clip(index.astype(object), 0, INT32_MAX), np.int32))
    if index.dtype.is_unsigned and isinstance(last, int) and index.dtype.max <= last:
        return cast(index, tf.int32)
    if index.dtype.size < 4:
        index = cast(index, tf.int32)
    dtype = index.dtype
    last = constant(last, dtype) if isinstance(last, int) else cast(last, dtype)
    if dtype.is_unsigned:
        return cast(tf.raw_ops.Minimum(x=index, y=last), tf.int32)
    return tf.raw_ops.ClipByValue(t=index, clip_value_min=constant(0, dtype), clip_value_max=last)


def signed(index: Index) -> Index:
    """Indices in a signed dtype. Those that are too high for an array remain so."""
    if not isinstance(index, tf.Tensor):
        return np.asarray(np.clip(index.astype(object), -1, INT32_MAX), np.int64)
    if index.dtype in (tf.uint32, tf.uint64):
        index = tf.raw_ops.Minimum(x=index, y=constant(INT32_MAX, index.dtype))
    return index if index.dtype == tf.int64 else cast(index, tf.int32)


def are_same(parts: Sequence[Index], clamped: Sequence[Index]) -> Index:
    """For each index vector whether clamping its elements changed none of them."""
    result: Index = np.array(True)
    for part, moved in zip(parts, clamped, strict=True):
        result = _both(result, _equal(part, moved))
    return result


def _equal(index: Index, clamped: Index) -> Index:
    if isinstance(index, np.ndarray) and isinstance(clamped, np.ndarray):
        return np.asarray(index == clamped)
    index, clamped = index_tensor(index), index_tensor(clamped)
    if index.dtype in (tf.uint32, tf.uint64):
        clamped = cast(clamped, index.dtype)
    else:
        index = cast(index, clamped.dtype)
    return tf.raw_ops.Equal(x=index, y=clamped)


def _both(x: Index, y: Index) -> Index:
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return x & y
    for known, other in ((x, y), (y, x)):
        if isinstance(known, np.ndarray) and known.all():
            return other
    return tf.raw_ops.LogicalAnd(x=tensor(x), y=tensor(y))


def linear(
    ctx: Context, parts: Sequence[Index], shape: Sequence[Any], axes: Sequence[int]
) -> Index:
    """Positions in row-major order.

    Args:
      ctx: the context of the rule.
      parts: in-bounds indices along each of `axes`.
      shape: the dimensions of the array.
      axes: which of them are indexed. The index along others is zero.
    """
    is_large = avals.is_static(shape) and math.prod(shape) > INT32_MAX
    position: Index = np.array(0)
    for part, axis in zip(parts, axes, strict=True):
        if is_large and isinstance(part, tf.Tensor):
            part = cast(part, tf.int64)
        position = add(position, _multiply(ctx, part, math.prod(shape[axis + 1 :])))
    return position


def _multiply(ctx: Context, index: Index, stride: Any) -> Index:
    if isinstance(stride, int) and (stride == 1 or isinstance(index, np.ndarray)):
        return index * stride if isinstance(index, np.ndarray) else index
    index, stride = index_tensor(index), ctx.size(stride)
    dtype = index.dtype
    stride = constant(stride, dtype) if isinstance(stride, int) else cast(stride, dtype)
    return tf.raw_ops.Mul(x=index, y=stride)


def starts(ctx: Context, parts: Mapping[int, Index], rank: int) -> list[int | tf.Tensor]:
    """Where a single window begins along each of `rank` axes.

    Args:
      ctx: the context of the rule.
      parts: for some axes the index, in an array of one element; along others it is zero.
      rank: the number of axes.
    """
    result: list[int | tf.Tensor] = [0] * rank
    for axis, part in parts.items():
        known = isinstance(part, np.ndarray)
        result[axis] = int(part.item()) if known else movement.reshape(ctx, part, ())
    return result


def steps(ctx: Context, shape: Sequence[Any], axis: int, size: Any) -> Index:
    """The positions of the first elements along an axis.

    Args:
      ctx: the context of the rule.
      shape: the dimensions of the array.
      axis: the axis.
      size: how many elements.

    Returns:
      The positions, with dimensions to broadcast with those of the axes that follow.
    """
    stride = math.prod(shape[axis + 1 :])
    expanded = [-1] + [1] * (len(shape) - axis - 1)
    if isinstance(size, int) and isinstance(stride, int):
        return np.reshape(np.arange(size, dtype=np.int64) * stride, expanded)
    limit, stride = ctx.size(size), ctx.size(stride)
    limit = constant(limit, np.int32) if isinstance(limit, int) else limit
    places = tf.raw_ops.Range(start=constant(0, np.int32), limit=limit, delta=constant(1, np.int32))
    return tf.raw_ops.Reshape(tensor=places * stride, shape=integers(expanded))


def window(ctx: Context, shape: Sequence[Any], sizes: Sequence[Any]) -> Index:
    """The positions of the elements of a window at the origin.

    Args:
      ctx: the context of the rule.
      shape: the dimensions of the array.
      sizes: the dimensions of the window.

    Returns:
      The positions as a vector, in the row-major order of the elements of the window.
    """
    position: Index = np.zeros([1] * len(shape), np.int64)
    for axis, size in enumerate(sizes):
        if size != 1:
            position = add(position, steps(ctx, shape, axis, size))
    return reshape(ctx, position, (math.prod(sizes),))


def add(x: Index, y: Index) -> Index:
    """The sum of two arrays of positions, which broadcast as in NumPy."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return x + y
    for known, other in ((x, y), (y, x)):
        if isinstance(known, np.ndarray) and not known.any() and known.size == 1:
            return other
    x, y = index_tensor(x), index_tensor(y)
    dtype = tf.int64 if tf.int64 in (x.dtype, y.dtype) else tf.int32
    return tf.raw_ops.AddV2(x=cast(x, dtype), y=cast(y, dtype))


def reshape(ctx: Context, index: Index, shape: Sequence[Any]) -> Index:
    """`index` with the dimensions `shape`."""
    if isinstance(index, np.ndarray) and avals.is_static(shape):
        return index.reshape(shape)
    return movement.reshape(ctx, index_tensor(index), shape)


def broadcast(ctx: Context, index: Index, shape: Sequence[Any]) -> Index:
    """`index` broadcast to the dimensions `shape`."""
    if isinstance(index, np.ndarray) and avals.is_static(shape):
        return np.broadcast_to(index, shape)
    return movement.broadcast(ctx, index_tensor(index), shape)


def transpose(ctx: Context, x: Index, order: Sequence[int]) -> Index:
    """`x` with its axes in another order."""
    return x.transpose(order) if isinstance(x, np.ndarray) else movement.transpose(ctx, x, order)
