"""Reshape, transpose, broadcast, slice and pad: what the rules that move elements are made of.

Each adds no node where there is nothing to do, takes symbolic dimensions, and works for every
rank: where TensorFlow's kernels end at eight dimensions, one axis is done after the other.
"""

import math
import string
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lowering import avals
from lowering.context import Context
from lowering.ops import constant, integers, memo, modes, move, tuning
from lowering.targets import Mode

# The highest rank that the kernels of Slice, StridedSlice, ReverseV2 and Tile take.
MAX_RANK = 8
# That of PadV2.
_MAX_PAD_RANK = 6
# The most runs of axes, alternately broadcast and not, that broadcasting kernels take.
MAX_GROUPS = 5


def reshape(ctx: Context, x: tf.Tensor, shape: Sequence[Any]) -> tf.Tensor:
    """`x` with the dimensions `shape`; a shape that it has been given before costs nothing."""
    if avals.is_static(shape):
        return x if x.shape.as_list() == list(shape) else _reshape(x, integers(shape))
    unknown = [i for i, dim in enumerate(shape) if not isinstance(dim, int)]
    if len(unknown) > 1 or 0 in shape:
        return move("Reshape", x, ctx.shape(shape))
    return move("Reshape", x, integers([-1 if i in unknown else d for i, d in enumerate(shape)]))


def _reshape(x: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    if modes.current() is Mode.EAGER:
        return move("Reshape", x, shape)
    return memo.once(("reshape", id(x), id(shape)), lambda: move("Reshape", x, shape), x, shape)


def transpose(ctx: Context, x: tf.Tensor, permutation: Sequence[int]) -> tf.Tensor:
    """`x` with its axes in another order: axis i of the result is axis `permutation[i]`."""
    if list(permutation) == sorted(permutation):
        return x
    if not tuning.transposes_by_einsum(ctx.target, x, permutation):
        return move("Transpose", x, integers(permutation))
    axes = string.ascii_lowercase[: x.shape.rank]
    equation = f"{axes}->{''.join(axes[i] for i in permutation)}"
    return tf.raw_ops.Einsum(inputs=[x], equation=equation)


def broadcast(ctx: Context, x: tf.Tensor, shape: Sequence[Any]) -> tf.Tensor:
    """`x` broadcast to the dimensions `shape`, aligned at the last one."""
    added = len(shape) - x.shape.rank
    if x.shape.as_list() == list(shape[added:]) and set(shape[:added]) <= {1}:
        return reshape(ctx, x, shape)
    if len(shape) > MAX_GROUPS:
        x = _broadcast_trailing(ctx, x, shape)
    return move("BroadcastTo", x, ctx.shape(shape))


def _broadcast_trailing(ctx: Context, x: tf.Tensor, shape: Sequence[Any]) -> tf.Tensor:
    """Broadcasts the last axes, until few enough groups are left for one op to do the others.

    A group is a run of axes that are all broadcast, or all not.
    """
    have = [1] * (len(shape) - x.shape.rank) + x.shape.as_list()
    wide = [i for i in range(len(shape)) if have[i] == 1 and shape[i] != 1]
    starts = [i for i in range(1, len(shape)) if (i in wide) != (i - 1 in wide)]
    if len(starts) < MAX_GROUPS:
        return x
    # The axes before the last groups wait as axes of size one.
    first = starts[1 - MAX_GROUPS]
    partial = [1 if have[i] == 1 and i < first else size for i, size in enumerate(shape)]
    x = move("BroadcastTo", x, ctx.shape(partial))
    return _broadcast_trailing(ctx, x, shape)


def vector(values: Sequence[Any]) -> tf.Tensor:
    """Ints and integer scalar tensors of one dtype as one vector."""
    dtypes = {value.dtype for value in values if isinstance(value, tf.Tensor)}
    if not dtypes:
        return integers(values)
    (dtype,) = dtypes
    return tf.raw_ops.Pack(
        values=[v if isinstance(v, tf.Tensor) else constant(v, dtype) for v in values], axis=0
    )


def slice_(
    ctx: Context, x: tf.Tensor, shape: Sequence[Any], starts: Sequence[Any], sizes: Sequence[Any]
) -> tf.Tensor:
    """The block of `x` that begins at `starts` and has the dimensions `sizes`.

    Args:
      ctx: the context of the rule.
      x: a tensor.
      shape: its dimensions.
      starts: where the block begins in each: dimensions, or integer scalars of one dtype.
      sizes: the dimensions of the block. It must lie inside of `x`.
    """
    cut = [i for i in range(len(shape)) if not (sizes[i] is shape[i] or sizes[i] == shape[i])]
    if not cut:
        return x
    if len(shape) > MAX_RANK:
        return along_axes(
            ctx,
            x,
            shape,
            cut,
            sizes,
            lambda y, i, dims, new: slice_(ctx, y, dims, (0, starts[i], 0), new),
        )
    starts = [start if isinstance(start, tf.Tensor) else ctx.size(start) for start in starts]
    # What is not cut needs no size: -1 stands for all that is left.
    extents = [ctx.size(sizes[i]) if i in cut else sizes[i] for i in range(len(shape))]
    extents = [e if isinstance(e, int | tf.Tensor) else -1 for e in extents]
    begin, size = vector(starts), vector(extents)
    if begin.dtype != size.dtype:
        begin, size = tf.cast(begin, tf.int64), tf.cast(size, tf.int64)
    return move("Slice", x, begin, size)


def pad(
    ctx: Context,
    x: tf.Tensor,
    shape: Sequence[Any],
    value: tf.Tensor,
    paddings: Sequence[tuple[Any, Any]],
    padded: Sequence[Any],
) -> tf.Tensor:
    """`x` with copies of a scalar before and after it along each axis.

    Args:
      ctx: the context of the rule.
      x: a tensor.
      shape: its dimensions.
      value: a scalar.
      paddings: how many to add before and after: dimensions that are not negative.
      padded: the dimensions of the result.
    """
    axes = [i for i, (low, high) in enumerate(paddings) if _is_nonzero(low) or _is_nonzero(high)]
    if not axes:
        return x
    if len(shape) > _MAX_PAD_RANK:
        return along_axes(
            ctx,
            x,
            shape,
            axes,
            padded,
            lambda y, i, dims, new: pad(ctx, y, dims, value, [(0, 0), paddings[i], (0, 0)], new),
        )
    if avals.is_static([p for pair in paddings for p in pair]):
        return move("PadV2", x, integers(paddings), value)
    flat = ctx.shape([p for pair in paddings for p in pair])
    return move("PadV2", x, tf.raw_ops.Reshape(tensor=flat, shape=integers([-1, 2])), value)


def _is_nonzero(dim: Any) -> bool:
    return not isinstance(dim, int) or dim != 0


def along_axes(
    ctx: Context,
    x: tf.Tensor,
    shape: Sequence[Any],
    axes: Sequence[int],
    result: Sequence[Any],
    fun: Callable[[tf.Tensor, int, Sequence[Any], Sequence[Any]], tf.Tensor],
) -> tf.Tensor:
    """Does to one axis after the other what a kernel cannot do to a tensor of many dimensions.

    Args:
      ctx: the context of the rule.
      x: a tensor.
      shape: its dimensions.
      axes: the axes to do.
      result: the dimensions of the result.
      fun: given a view of `x` with three dimensions, the axis that is the one in the middle, the
        dimensions of the view and the dimensions it should get, it does that axis.
    """
    dims = list(shape)
    for axis in axes:
        before, after = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
        view, new = (before, dims[axis], after), (before, result[axis], after)
        x = fun(reshape(ctx, x, view), axis, view, new)
        dims[axis] = result[axis]
    return reshape(ctx, x, result)
