"""`take` and `one_hot` of natural targets; see `passes.fusion.index_ops`."""

import numpy as np

from lowering.ops import cast, constant, dtypes, emit, kernels, move
from lowering.ops.values import tensor
from lowering.registry import rule
from lowering.targets import ONNX, PORTABLE, TFJS
from lowering.tensors import indexing, movement


@rule("take", target=PORTABLE, keep_constants=True)
def take(ctx, x, index, *, axis, batch_dims, wraps, clips, fill_value):
    """Indices are clipped first, so that a remainder counts negative ones from the end."""
    x, size = tensor(x), ctx.in_avals[0].shape[axis]
    inside = _clipped(index, -size if wraps else 0, size - 1) if clips else index
    place = _from_end(inside, size) if wraps else inside
    rows = move(
        "GatherV2",
        x,
        indexing.index_tensor(place),
        constant(axis, np.int32),
        batch_dims=batch_dims,
    )
    if fill_value is None:
        return rows
    is_inside = indexing.are_same([index], [inside])
    shape, after = ctx.in_avals[1].shape, len(ctx.in_avals[0].shape) - axis - 1
    # Leading axes of size one need not be there.
    between = [1] * (axis - batch_dims) if batch_dims else []
    expanded = [*shape[:batch_dims], *between, *shape[batch_dims:], *[1] * after]
    is_inside = movement.reshape(ctx, tensor(is_inside), expanded)
    fill = constant(np.asarray(fill_value).astype(ctx.out_aval.dtype))
    return move("SelectV2", is_inside, rows, fill)


def _clipped(index, low, high):
    if isinstance(index, np.ndarray):
        return np.asarray(np.clip(index, low, high))
    low, high = constant(low, index.dtype), constant(high, index.dtype)
    if kernels.supports("ClipByValue", index.dtype):
        return emit("ClipByValue", index, low, high)
    return emit("Minimum", emit("Maximum", index, low), high)


def _from_end(index, size):
    """Negative indices, counted from the end: a remainder where the runtime has one."""
    if isinstance(index, np.ndarray):
        return np.asarray(index % size)
    last = constant(size, index.dtype)
    if kernels.supports("FloorMod", index.dtype):
        return emit("FloorMod", index, last)
    is_negative = emit("Less", index, constant(0, index.dtype))
    return emit("SelectV2", is_negative, emit("AddV2", index, last), index)


@rule("one_hot", target=PORTABLE)
def one_hot(ctx, index, *, depth, dtype):
    on, off = (constant(value, dtype) for value in (1, 0))
    return emit("OneHot", index, constant(depth, np.int32), on, off)


@rule("one_hot", target=TFJS)
def one_hot_tfjs(ctx, index, *, depth, dtype):
    """One-hot vectors of int32, which are cast; see `tfjs.quirks.one_hot_of_integers`."""
    on, off = (constant(value, np.int32) for value in (1, 0))
    vectors = emit("OneHot", index, constant(depth, np.int32), on, off)
    return cast(vectors, dtypes.to_tf(dtype))


@rule("one_hot", target=ONNX)
def one_hot_onnx(ctx, index, *, depth, dtype):
    """Comparisons, as OneHot of ONNX counts negative indices from the end."""
    expanded = emit("ExpandDims", index, constant(-1, np.int32))
    return cast(emit("Equal", expanded, constant(range(depth), index.dtype)), dtypes.to_tf(dtype))
