"""Slices whose bounds are parameters."""

from lowering.ops import move
from lowering.registry import Trait, rule
from lowering.tensors import movement


@rule("slice", traits=Trait.SELECTS)
def slice_(ctx, x, *, start_indices, limit_indices, strides):
    shape, sizes = ctx.in_avals[0].shape, ctx.out_aval.shape
    if strides is None or all(stride == 1 for stride in strides):
        return movement.slice_(ctx, x, shape, start_indices, sizes)
    bounds = list(zip(start_indices, limit_indices, strides, strict=True))
    if len(shape) <= ctx.target.max_rank("StridedSlice"):
        return _strided(ctx, x, shape, bounds)

    def slice_axis(y, axis, dims, _):
        return _strided(ctx, y, dims, [(0, dims[0], 1), bounds[axis], (0, dims[2], 1)])

    axes = [i for i, dim in enumerate(shape) if bounds[i] != (0, dim, 1)]
    return movement.along_axes(ctx, x, shape, axes, sizes, slice_axis)


def _strided(ctx, x, shape, bounds):
    starts, limits, strides = zip(*bounds, strict=True)
    # A limit that is the end of its axis is left out, as the mask says: it may be symbolic.
    mask = sum(1 << i for i, dim in enumerate(shape) if limits[i] == dim)
    ends = [0 if limit == dim else limit for limit, dim in zip(limits, shape, strict=True)]
    operands = (ctx.shape(starts), ctx.shape(ends), ctx.shape(strides))
    return move("StridedSlice", x, *operands, end_mask=mask)
