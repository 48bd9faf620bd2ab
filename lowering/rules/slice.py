"""Slices whose bounds are parameters."""

from lowering.ops import move
from lowering.registry import Trait, rule
from lowering.tensors import movement


@rule("slice", traits=Trait.SELECTS)
def slice_(ctx, x, *, start_indices, limit_indices, strides):
    shape, sizes = ctx.in_avals[0].shape, ctx.out_aval.shape
    if strides is None or all(stride == 1 for stride in strides):
        return movement.slice_(ctx, x, shape, start_indices, sizes)
    if len(shape) > movement.MAX_RANK:
        axes = [
            i
            for i in range(len(shape))
            if (start_indices[i], limit_indices[i], strides[i]) != (0, shape[i], 1)
        ]
        return movement.along_axes(
            ctx,
            x,
            shape,
            axes,
            sizes,
            lambda y, i, dims, _: _strided(
                ctx,
                y,
                dims,
                (0, start_indices[i], 0),
                (dims[0], limit_indices[i], dims[2]),
                (1, strides[i], 1),
            ),
        )
    return _strided(ctx, x, shape, start_indices, limit_indices, strides)


def _strided(ctx, x, shape, starts, limits, strides):
    # Bits of the mask say where the end is not needed, as all that is left is taken.
    whole = [limit == dim for limit, dim in zip(limits, shape, strict=True)]
    limits = [0 if skip else limit for skip, limit in zip(whole, limits, strict=True)]
    return move(
        "StridedSlice",
        x,
        ctx.shape(starts),
        ctx.shape(limits),
        ctx.shape(strides),
        end_mask=sum(1 << i for i, w in enumerate(whole) if w),
    )
