"""Reading and writing a block of a tensor that begins at a computed position.

XLA has an op for each. Where XLA does not compile, TensorFlow's Slice and TensorStridedSliceUpdate
are the fastest. XLA compiles these, too, but again for every new position.
"""

import math

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from lowering import avals
from lowering.context import Context
from lowering.ops import cast, composites, constant, emit, kernels, move, vector
from lowering.targets import Mode
from lowering.tensors import indexing, movement
from lowering.tensors.movement import Dim, Shape, Starts

# The highest rank that the kernel of TensorStridedSliceUpdate takes.
_MAX_RANK = 8

# So few rows, or rows of at least so many elements, are written faster by index.
_FEW_ROWS, _LONG_ROW = 1024, 16


def start(ctx: Context, index: indexing.Index, dim: Dim, size: Dim) -> int | tf.Tensor:
    """Where along an axis of size `dim` a block begins: at `index`, or moved so that it fits."""
    last = dim - size
    if isinstance(last, int) and last == 0:
        return 0
    if isinstance(index, np.ndarray) and index <= 0:
        return 0
    clamped = indexing.clamp(ctx, index, last)
    return clamped if isinstance(clamped, tf.Tensor) else int(clamped)


def read(ctx: Context, x: tf.Tensor, shape: Shape, starts: Starts, sizes: Shape) -> tf.Tensor:
    """The block of `x` with dimensions `sizes` that begins at `starts`; it must lie inside `x`."""
    if ctx.mode is not Mode.COMPILED or all(isinstance(start, int) for start in starts):
        return movement.slice_(ctx, x, shape, starts, sizes)
    if ctx.takes_xla_ops:
        begin = vector(starts)
        return gen_xla_ops.xla_dynamic_slice(x, begin, cast(ctx.shape(sizes), begin.dtype))
    # First the axes with a known start, in one op. Then the others, one after the other.
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
    ctx: Context, x: tf.Tensor, shape: Shape, block: tf.Tensor, sizes: Shape, starts: Starts
) -> tf.Tensor:
    """`x` with the elements of `block`, which has dimensions `sizes`, from `starts` on.

    In a loop TensorStridedSliceUpdate writes in place. XLA compiles it only for known `starts`.
    """
    cut = [axis for axis in range(len(shape)) if sizes[axis] != shape[axis]]
    if not cut:
        return block
    if 0 in sizes:
        return x
    if x.dtype.name in ctx.target.block_writes and avals.is_static((*shape, *sizes)):
        return _call_write(ctx, x, shape, block, sizes, starts, cut)
    if ctx.target.is_consumer:
        first = starts[cut[0]]
        if len(cut) == 1 and isinstance(first, int):
            return _join(ctx, x, shape, block, sizes, first, cut[0])
        if _is_scattered(ctx, x, sizes, cut):
            return _scatter_vectors(x, block, sizes, starts, cut[-1] + 1)
        return _select_of(ctx, shape)(ctx, x, shape, block, sizes, starts, cut)
    # Axes after the last one that is cut need no index.
    rank = cut[-1] + 1
    begin = vector(starts[:rank])
    is_known = all(isinstance(start, int) for start in starts[:rank])
    if rank <= _MAX_RANK and (is_known or ctx.mode is Mode.EAGER):
        return _assign(x, block, begin)
    if ctx.takes_xla_ops:
        return _dynamic_update_slice(x, block, begin)
    if rank > _MAX_RANK or not ctx.target.has_xla_ops:
        return _scatter(ctx, x, shape, block, sizes, starts, rank)
    return ctx.by_mode(_assign, _dynamic_update_slice, x, block, begin)


def _join(ctx, x, shape, block, sizes, start, axis):
    """The block between what is before and after it along an axis."""

    def rest(begin, end):
        starts = [begin if i == axis else 0 for i in range(len(shape))]
        kept = [end - begin if i == axis else dim for i, dim in enumerate(shape)]
        return movement.slice_(ctx, x, shape, starts, kept)

    end = start + sizes[axis]
    before = [rest(0, start)] if start else []
    after = [] if end == shape[axis] else [rest(end, shape[axis])]
    return move("ConcatV2", [*before, block, *after], constant(axis, "int32"))


def _call_write(ctx, x, shape, block, sizes, starts, cut):
    """A call of a function, in whose place exporters put an op that may write in place."""
    places = [scalar if isinstance(scalar, int) else cast(scalar, tf.int32) for scalar in starts]

    def body(x, block, begin):
        inner = list(places)
        for axis in cut:
            inner[axis] = movement.reshape(ctx, begin[axis : axis + 1], ())
        return _select_of(ctx, shape)(ctx, x, shape, block, sizes, inner, cut)

    return composites.call(composites.BLOCK_WRITE, tuple(cut), body, x, block, vector(places))


def _select_of(ctx, shape):
    """How to choose each element from a block or from an array of a shape."""
    is_flat = len(shape) > ctx.target.max_rank("LogicalAnd") and avals.is_static(shape)
    return _select_flat if is_flat else _select


def _select(ctx, x, shape, block, sizes, starts, cut):
    """Chooses each element from the block or from `x`, in ops that all runtimes have."""
    is_inside = None
    for axis in cut:
        steps = indexing.steps(ctx, (shape[axis],), 0, shape[axis])
        start = starts[axis]
        offset = constant(start, "int32") if isinstance(start, int) else cast(start, tf.int32)
        place = emit("Sub", indexing.index_tensor(steps), offset)
        last = movement.scalar(ctx.size(sizes[axis] - 1), tf.int32)
        nearest = emit("Minimum", emit("Maximum", place, constant(0, "int32")), last)
        block = move("GatherV2", block, nearest, constant(axis, "int32"))
        is_here = movement.reshape(
            ctx, emit("Equal", nearest, place), [shape[axis]] + [1] * (len(shape) - axis - 1)
        )
        is_inside = is_here if is_inside is None else emit("LogicalAnd", is_inside, is_here)
    return move("SelectV2", is_inside, block, x)


def _select_flat(ctx, x, shape, block, sizes, starts, cut):
    """As `_select`, on vectors, for arrays with more axes than runtimes take."""
    is_inside, index = None, constant(0, "int32")
    coordinates = np.indices(shape, np.int32).reshape(len(shape), -1)
    for axis, steps in enumerate(coordinates):
        place = nearest = constant(steps)
        if axis in cut:
            place = emit("Sub", place, movement.scalar(starts[axis], tf.int32))
            last = constant(sizes[axis] - 1, "int32")
            nearest = emit("Minimum", emit("Maximum", place, constant(0, "int32")), last)
            is_here = emit("Equal", nearest, place)
            is_inside = is_here if is_inside is None else emit("LogicalAnd", is_inside, is_here)
        stride = constant(math.prod(sizes[axis + 1 :]), "int32")
        index = emit("AddV2", emit("Mul", nearest, stride), index)
    flat = movement.reshape(ctx, block, (math.prod(sizes),))
    found = move("GatherV2", flat, index, constant(0, "int32"))
    old = movement.reshape(ctx, x, (math.prod(shape),))
    return movement.reshape(ctx, move("SelectV2", is_inside, found, old), shape)


def _assign(x, block, begin):
    rank = begin.shape[0]
    sizes = block.shape[:rank]
    strides = constant([1] * rank, begin.dtype)
    known = tf.get_static_value(begin)
    if not sizes.is_fully_defined():
        end = emit("AddV2", begin, tf.shape(block, begin.dtype)[:rank])
    elif known is None:
        end = emit("AddV2", begin, constant(sizes.as_list(), begin.dtype))
    else:
        end = constant(known + sizes.as_list(), begin.dtype)
    return move("TensorStridedSliceUpdate", x, begin, end, strides, block)


def _dynamic_update_slice(x, block, begin):
    rest = constant([0] * (x.shape.rank - begin.shape[0]), begin.dtype)
    return gen_xla_ops.xla_dynamic_update_slice(x, block, tf.concat([begin, rest], 0))


def _is_scattered(ctx, x, sizes, cut):
    """Whether index vectors are the fastest way to write a block on the target.

    Row: a decode step's cache in `tools/bench_exports.py`.
    """
    rank = cut[-1] + 1
    lead, row = sizes[:rank], sizes[rank:]
    if not ctx.target.scatters_blocks or rank > indexing.MAX_DEPTH or not avals.is_static(lead):
        return False
    is_long = avals.is_static(row) and math.prod(row) >= _LONG_ROW
    is_fast = is_long or math.prod(lead) <= _FEW_ROWS
    return is_fast and kernels.supports("TensorScatterUpdate", x.dtype)


def _scatter_vectors(x, block, sizes, starts, rank):
    """Writes the block as rows, which have all axes from `rank` on, by index vectors."""
    known = [start if isinstance(start, int) else 0 for start in starts[:rank]]
    grid = np.moveaxis(np.indices(sizes[:rank], np.int32), 0, -1) + np.array(known, np.int32)
    index = constant(grid)
    for axis, start in enumerate(starts[:rank]):
        if isinstance(start, tf.Tensor):
            unit = np.eye(rank, dtype=np.int32)[axis]
            step = cast(start, tf.int32)
            index = emit("AddV2", index, emit("Mul", step, constant(unit)) if rank > 1 else step)
    return move("TensorScatterUpdate", x, index, block)


def _scatter(ctx, x, shape, block, sizes, starts, rank):
    """Writes the block as rows: each has all axes from `rank` on, which are not cut."""
    lead, rest = shape[:rank], shape[rank:]
    parts = [s if isinstance(s, tf.Tensor) else np.array(s) for s in starts[:rank]]
    origin = indexing.linear(ctx, parts, lead, range(rank))
    position = indexing.add(origin, indexing.window(ctx, lead, sizes[:rank]))
    rows = math.prod(sizes[:rank])
    position = indexing.index_tensor(indexing.reshape(ctx, position, (rows, 1)))
    flat = movement.reshape(ctx, x, (math.prod(lead), *rest))
    block = movement.reshape(ctx, block, (rows, *rest))
    return movement.reshape(ctx, move("TensorScatterUpdate", flat, position, block), shape)
