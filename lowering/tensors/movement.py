"""Reshape, transpose, broadcast, slice and pad, for tensors of any rank and symbolic dimensions.

They add no node to the graph where there is nothing to do. Where TensorFlow's kernels do not take
so many dimensions, they do one axis after the other.
"""

import itertools
import math
import operator
import string
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from lowering import avals
from lowering.context import Context
from lowering.ops import cast, constant, integers, memo, modes, move, tuning, vector
from lowering.targets.tflite import quirks

# A dimension: an int, or an expression over dimension variables.
Dim = Any
Shape = Sequence[Dim]
# Positions: dimensions, or integer scalars of one dtype.
Starts = Sequence[Dim | tf.Tensor]
# How many elements to add before and after, for each axis.
Paddings = Sequence[tuple[Dim, Dim]]


def scalar(value: int | tf.Tensor, dtype: Any) -> tf.Tensor:
    """An int or an integer scalar as a tensor of a TensorFlow dtype."""
    return cast(value, dtype) if isinstance(value, tf.Tensor) else constant(value, dtype)


def reshape(ctx: Context, x: tf.Tensor, shape: Shape) -> tf.Tensor:
    """`x` with the dimensions `shape`; reshaped once per graph to each shape."""
    if avals.is_static(shape):
        return x if x.shape.as_list() == list(shape) else _reshape(x, integers(shape))
    unknown = [i for i, dim in enumerate(shape) if not isinstance(dim, int)]
    if len(unknown) > 1 or 0 in shape or _may_be_reordered(ctx, x, shape):
        return move("Reshape", x, ctx.shape(shape))
    return move("Reshape", x, integers([-1 if i in unknown else d for i, d in enumerate(shape)]))


def _may_be_reordered(ctx, x, shape):
    """Whether a converter may reshape before it transposes a matrix, not after it.

    See `quirks.reshapes_before_transposes`.
    """
    if x.shape.rank != 2 or len(shape) == 2:
        return False
    if not ctx.target.has(quirks.reshapes_before_transposes):
        return False
    known = itertools.takewhile(lambda dim: isinstance(dim, int), shape)
    return x.shape[0] in itertools.accumulate(known, operator.mul)


def _reshape(x, shape):
    if modes.is_eager():
        return move("Reshape", x, shape)
    return memo.once(("reshape", id(x), id(shape)), lambda: move("Reshape", x, shape), x, shape)


def inferable(ctx: Context, x: tf.Tensor, shape: Shape) -> tf.Tensor:
    """`x`, which has the dimensions `shape`, such that converters infer those that are known.

    They know no dimension of what some ops with symbolic sizes return. But without the number of
    features, they take no convolution.
    """
    is_partly_known = any(isinstance(d, int) for d in shape) and not avals.is_static(shape)
    return reshape(ctx, x, shape) if ctx.target.is_consumer and is_partly_known else x


def transpose(ctx: Context, x: tf.Tensor, permutation: Sequence[int]) -> tf.Tensor:
    """`x` with its axes in another order: axis i of the result is axis `permutation[i]`."""
    if list(permutation) == sorted(permutation):
        return x
    moved = [axis for axis in permutation if x.shape[axis] != 1]
    if moved == sorted(moved) and x.shape.is_fully_defined():
        return reshape(ctx, x, [x.shape[axis] for axis in permutation])
    if _is_taken_for_untransposed(ctx, x, permutation):
        # The converter asks for the same shape but for leading axes of size one.
        y = _reshape(x, integers([*x.shape, 1]))
        y = move("Transpose", y, integers([*permutation, len(permutation)]))
        return _reshape(y, integers([x.shape[axis] for axis in permutation]))
    if len(permutation) > ctx.target.max_rank("Transpose") and None not in x.shape:
        return _transpose_by_steps(ctx, x, permutation)
    if not tuning.transposes_by_einsum(ctx.target, x, permutation):
        return move("Transpose", x, integers(permutation))
    axes = string.ascii_lowercase[: x.shape.rank]
    equation = f"{axes}->{''.join(axes[i] for i in permutation)}"
    return move("Einsum", [x], equation=equation)


def _is_taken_for_untransposed(ctx, x, permutation):
    """Whether a converter may take an earlier transpose and this one for none.

    See `quirks.transposes_to_the_same_shape`. What stands between does not matter: the converter
    moves elementwise ops from there.
    """
    if not ctx.target.has(quirks.transposes_to_the_same_shape) or not tf.is_symbolic_tensor(x):
        return False
    if None in x.shape or len(permutation) >= ctx.target.max_rank("Transpose"):
        return False
    earlier = memo.collected(x.graph, "transposes", _shapes_of_transpose)
    return (tuple(x.shape[axis] for axis in permutation), tuple(x.shape)) in earlier


def _shapes_of_transpose(op):
    """Both shapes without leading ones; None if the result has no leading axis of size one."""
    if op.type != "Transpose" or not op.inputs[0].shape.is_fully_defined():
        return None
    shapes = op.inputs[0].shape.as_list(), op.outputs[0].shape.as_list()
    if shapes[1][0] != 1:
        return None
    return tuple(tuple(itertools.dropwhile(lambda d: d == 1, shape)) for shape in shapes)


def _transpose_by_steps(ctx, x, permutation):
    """Moves each axis to its place in turn, past the axes between."""
    order, sizes = list(range(len(permutation))), x.shape.as_list()
    for place, axis in enumerate(permutation):
        found = order.index(axis)
        passed = math.prod(sizes[place:found])
        if 1 not in (passed, sizes[found]):
            parts = [math.prod(sizes[:place]), passed, sizes[found], math.prod(sizes[found + 1 :])]
            x = move("Transpose", reshape(ctx, x, parts), integers([0, 2, 1, 3]))
        for moved in (order, sizes):
            moved.insert(place, moved.pop(found))
    return reshape(ctx, x, sizes)


def broadcast(ctx: Context, x: tf.Tensor, shape: Shape) -> tf.Tensor:
    """`x` broadcast to the dimensions `shape`, aligned at the last one."""
    added = len(shape) - x.shape.rank
    if x.shape.as_list() == list(shape[added:]) and set(shape[:added]) <= {1}:
        return reshape(ctx, x, shape)
    if len(shape) > ctx.target.max_rank("BroadcastTo"):
        return _broadcast_by_axes(ctx, x, shape)
    if len(shape) > ctx.target.broadcast_groups:
        x = _broadcast_trailing(ctx, x, shape)
    return move("BroadcastTo", x, ctx.shape(shape))


def _broadcast_by_axes(ctx, x, shape):
    """Broadcasts one axis after the other."""
    have = [1] * (len(shape) - x.shape.rank) + x.shape.as_list()
    axes = [i for i in range(len(shape)) if have[i] == 1 and shape[i] != 1]
    dims = [1 if i in axes else size for i, size in enumerate(shape)]

    def broadcast_axis(y, axis, merged, new):
        return move("BroadcastTo", y, ctx.shape(new))

    return along_axes(ctx, reshape(ctx, x, dims), dims, axes, shape, broadcast_axis)


def _broadcast_trailing(ctx, x, shape):
    """Broadcasts the last axes, until one op can do the others.

    Axes form groups: runs of neighbours that are all broadcast, or all not.
    """
    have = [1] * (len(shape) - x.shape.rank) + x.shape.as_list()
    wide = [i for i in range(len(shape)) if have[i] == 1 and shape[i] != 1]
    starts = [i for i in range(1, len(shape)) if (i in wide) != (i - 1 in wide)]
    most = ctx.target.broadcast_groups
    if len(starts) < most:
        return x
    # The axes before the last groups stay of size one for now.
    first = starts[1 - most]
    partial = [1 if have[i] == 1 and i < first else size for i, size in enumerate(shape)]
    x = move("BroadcastTo", x, ctx.shape(partial))
    return _broadcast_trailing(ctx, x, shape)


def slice_(ctx: Context, x: tf.Tensor, shape: Shape, starts: Starts, sizes: Shape) -> tf.Tensor:
    """The block of `x` with dimensions `sizes` that begins at `starts`; it must lie inside `x`."""
    cut = [i for i in range(len(shape)) if not (sizes[i] is shape[i] or sizes[i] == shape[i])]
    if not cut:
        return x
    if len(shape) > ctx.target.max_rank("Slice"):

        def slice_axis(y, i, dims, new):
            return slice_(ctx, y, dims, (0, starts[i], 0), new)

        return along_axes(ctx, x, shape, cut, sizes, slice_axis)
    starts = [start if isinstance(start, tf.Tensor) else ctx.size(start) for start in starts]
    # An axis that is not cut needs no size: -1 stands for all that is left.
    extents = [ctx.size(sizes[i]) if i in cut else sizes[i] for i in range(len(shape))]
    extents = [e if isinstance(e, int | tf.Tensor) else -1 for e in extents]
    begin, size = vector(starts), vector(extents)
    if begin.dtype != size.dtype:
        begin, size = tf.cast(begin, tf.int64), tf.cast(size, tf.int64)
    return move("Slice", x, begin, size)


def pad(
    ctx: Context, x: tf.Tensor, shape: Shape, value: tf.Tensor, paddings: Paddings, padded: Shape
) -> tf.Tensor:
    """`x` with copies of the scalar `value` around it, so that it has the dimensions `padded`.

    No padding is negative.
    """
    axes = [i for i, pair in enumerate(paddings) if any(not isinstance(d, int) or d for d in pair)]
    if not axes:
        return x
    if len(shape) > ctx.target.max_rank("PadV2"):

        def pad_axis(y, i, dims, new):
            return pad(ctx, y, dims, value, [(0, 0), paddings[i], (0, 0)], new)

        return along_axes(ctx, x, shape, axes, padded, pad_axis)
    amounts = [amount for pair in paddings for amount in pair]
    if avals.is_static(amounts):
        return move("PadV2", x, integers(paddings), value)
    pairs = tf.raw_ops.Reshape(tensor=ctx.shape(amounts), shape=integers([-1, 2]))
    y = move("PadV2", x, pairs, value)
    return inferable(ctx, y, padded)


def along_axes(
    ctx: Context,
    x: tf.Tensor,
    shape: Shape,
    axes: Sequence[int],
    result: Shape,
    fun: Callable[[tf.Tensor, int, Shape, Shape], tf.Tensor],
) -> tf.Tensor:
    """Applies `fun` to one axis of `x` after the other, each as the middle one of three dimensions.

    Args:
      axes: the axes that `fun` is applied to.
      result: the dimensions of the result.
      fun: takes `x` with three dimensions, the axis that is the middle one, these dimensions and
        the dimensions to return.
    """
    dims = list(shape)
    for axis in axes:
        before, after = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
        merged, new = (before, dims[axis], after), (before, result[axis], after)
        x = fun(reshape(ctx, x, merged), axis, merged, new)
        dims[axis] = result[axis]
    return reshape(ctx, x, result)
