"""Blocks of an array that begin at a computed place: reading and writing them.

XLA has ops for both. TensorFlow's own ops with a computed place, Slice and
TensorStridedSliceUpdate, are the fastest that are not compiled; but a compiled function would be
compiled again for every new place that comes from its arguments.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from lowering.context import Context
from lowering.ops import cast, constant, move
from lowering.targets import Mode, target
from lowering.tensors import indexing, movement


def start(ctx: Context, index: indexing.Index, last: Any) -> int | tf.Tensor:
    """Where a block begins along an axis, moved so that it fits.

    Args:
      ctx: the context of the rule.
      index: where it should begin: an integer scalar of any dtype.
      last: the highest start that fits: a dimension.
    """
    if isinstance(last, int) and last == 0:
        return 0
    if isinstance(index, np.ndarray) and index <= 0:
        return 0
    clamped = indexing.clamp(ctx, index, last)
    return clamped if isinstance(clamped, tf.Tensor) else int(clamped)


def read(
    ctx: Context,
    x: tf.Tensor,
    shape: Sequence[Any],
    starts: Sequence[int | tf.Tensor],
    sizes: Sequence[Any],
) -> tf.Tensor:
    """A block of `x`.

    Args:
      ctx: the context of the rule.
      x: a tensor.
      shape: its dimensions.
      starts: where the block begins: ints, or scalars of one dtype. It must lie inside of `x`.
      sizes: its dimensions.
    """
    if ctx.mode is not Mode.COMPILED or all(isinstance(start, int) for start in starts):
        return movement.slice_(ctx, x, shape, starts, sizes)
    if ctx.takes_xla_ops:
        begin = movement.vector(starts)
        return gen_xla_ops.xla_dynamic_slice(x, begin, cast(ctx.shape(sizes), begin.dtype))
    # Along axes whose place is known, and then along the others, one after the other.
    dynamic = [axis for axis, start in enumerate(starts) if isinstance(start, tf.Tensor)]
    first = [0 if axis in dynamic else start for axis, start in enumerate(starts)]
    kept = [shape[axis] if axis in dynamic else size for axis, size in enumerate(sizes)]
    x = movement.slice_(ctx, x, shape, first, kept)
    for axis in dynamic:
        steps = indexing.steps(ctx, (sizes[axis],), 0, sizes[axis])
        index = indexing.add(movement.reshape(ctx, starts[axis], (1,)), steps)
        x = move("GatherV2", x, index, constant(axis, "int32"))
    return x


def write(
    ctx: Context,
    x: tf.Tensor,
    shape: Sequence[Any],
    block: tf.Tensor,
    sizes: Sequence[Any],
    starts: Sequence[int | tf.Tensor],
) -> tf.Tensor:
    """`x` with a block of it replaced.

    In a loop TensorFlow does it in place, where the op that does can be used: XLA needs to know
    where the block begins to compile it.

    Args:
      ctx: the context of the rule.
      x: a tensor.
      shape: its dimensions.
      block: what is to be written.
      sizes: its dimensions.
      starts: where it begins: ints, or scalars of one dtype. The block must lie inside of `x`.
    """
    cut = [axis for axis in range(len(shape)) if sizes[axis] != shape[axis]]
    if not cut:
        return block
    if 0 in sizes:
        return x
    # Axes after the last that is cut need no index.
    rank = cut[-1] + 1
    begin = movement.vector(starts[:rank])
    is_known = all(isinstance(start, int) for start in starts[:rank])
    if rank <= movement.MAX_RANK and (is_known or ctx.mode is Mode.EAGER):
        return _assign(x, block, begin)
    if ctx.takes_xla_ops:
        return _dynamic_update_slice(x, block, begin)
    if rank > movement.MAX_RANK or ctx.target != target.XLA:
        return _scatter(ctx, x, shape, block, sizes, starts, rank)
    return ctx.by_mode(_assign, _dynamic_update_slice, x, block, begin)


def _assign(x: tf.Tensor, block: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    rank = begin.shape[0]
    sizes = block.shape[:rank]
    if sizes.is_fully_defined():
        extent = constant(sizes.as_list(), begin.dtype)
    else:
        extent = tf.shape(block, begin.dtype)[:rank]
    strides = constant([1] * rank, begin.dtype)
    end = tf.raw_ops.AddV2(x=begin, y=extent)
    return move("TensorStridedSliceUpdate", x, begin, end, strides, block)


def _dynamic_update_slice(x: tf.Tensor, block: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    rest = constant([0] * (x.shape.rank - begin.shape[0]), begin.dtype)
    begin = tf.concat([begin, rest], 0)
    return gen_xla_ops.xla_dynamic_update_slice(x, block, begin)


def _scatter(ctx, x, shape, block, sizes, starts, rank):
    """Writes rows: what lies after the last axis that is cut."""
    lead, rest = shape[:rank], shape[rank:]
    parts = [s if isinstance(s, tf.Tensor) else np.array(s) for s in starts[:rank]]
    origin = indexing.linear(ctx, parts, lead, range(rank))
    position = indexing.add(origin, indexing.window(ctx, lead, sizes[:rank]))
    rows = math.prod(sizes[:rank])
    position = indexing.index_tensor(indexing.reshape(ctx, position, (rows, 1)))
    flat = movement.reshape(ctx, x, (math.prod(lead), *rest))
    block = movement.reshape(ctx, block, (rows, *rest))
    return movement.reshape(ctx, move("TensorScatterUpdate", flat, position, block), shape)
