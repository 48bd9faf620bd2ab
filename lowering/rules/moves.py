"""Single ops that move elements, in place of several; see `passes.fusion.moves`."""

from lowering.ops import integers, move
from lowering.registry import Trait, rule
from lowering.targets import PORTABLE
from lowering.tensors import movement


@rule("mirror_pad", target=PORTABLE, traits=Trait.SELECTS)
def mirror_pad(ctx, x, *, paddings, repeats_ends):
    mode = "SYMMETRIC" if repeats_ends else "REFLECT"
    return move("MirrorPad", x, integers(paddings), mode=mode)


for _primitive, _op in {"depth_to_space": "DepthToSpace", "space_to_depth": "SpaceToDepth"}.items():
    rule(_primitive, target=PORTABLE, traits=Trait.SELECTS)(
        lambda ctx, x, *, block, op=_op: move(op, x, block_size=block)
    )


@rule("slice_and_squeeze", target=PORTABLE, traits=Trait.SELECTS)
def slice_and_squeeze(ctx, x, *, start_indices, limit_indices, dimensions):
    shape = ctx.in_avals[0].shape
    most = min(ctx.target.max_rank("StridedSlice"), ctx.target.max_rank("Slice"))
    dtype = ctx.in_avals[0].dtype.name
    is_taken = not ctx.target.is_consumer or dtype in ctx.target.ops.get("StridedSlice", ())
    if len(shape) > most or not is_taken:
        sizes = [high - low for low, high in zip(start_indices, limit_indices, strict=True)]
        cut = movement.slice_(ctx, x, shape, start_indices, sizes)
        return move("Squeeze", cut, axis=list(dimensions))
    # A whole axis may be of any size: the masks stand for its bounds.
    bounds = list(zip(start_indices, limit_indices, shape, strict=True))
    uncut = [
        i
        for i, (low, high, dim) in enumerate(bounds)
        if i not in dimensions and low == 0 and high == dim
    ]
    starts, ends = ([0 if i in uncut else b[j] for i, b in enumerate(bounds)] for j in (0, 1))
    mask, shrunk = (sum(1 << i for i in axes) for axes in (uncut, dimensions))
    operands = (integers(starts), integers(ends), integers([1] * len(shape)))
    return move(
        "StridedSlice", x, *operands, begin_mask=mask, end_mask=mask, shrink_axis_mask=shrunk
    )
