"""Ops that move elements, in place of several; see `passes.fusion.moves`."""

from lowering.ops import constant, integers, move
from lowering.registry import Trait, rule
from lowering.rules.shape import reversed_
from lowering.targets import ONNX, PORTABLE
from lowering.tensors import movement

# TensorFlow's kernel of MirrorPad takes no more axes, and runtimes no more than these.
_MOST_AXES = 5
_MOST_AXES_OF_RUNTIMES = 4


def _is_taken(ctx, op):
    """Whether the target has an op for the operand; a runtime has those in its table."""
    (x,) = ctx.in_avals
    if not ctx.target.is_consumer:
        return len(x.shape) <= _MOST_AXES
    return len(x.shape) <= _MOST_AXES_OF_RUNTIMES and x.dtype.name in ctx.target.ops.get(op, ())


@rule("mirror_pad", target=PORTABLE, traits=Trait.SELECTS)
def mirror_pad(ctx, x, *, paddings, repeats_ends):
    if not _is_taken(ctx, "MirrorPad"):
        return _padded_by_parts(ctx, x, paddings, repeats_ends)
    mode = "SYMMETRIC" if repeats_ends else "REFLECT"
    return move("MirrorPad", x, integers(paddings), mode=mode)


@rule("mirror_pad", target=ONNX, traits=Trait.SELECTS)
def mirror_pad_of_onnx(ctx, x, *, paddings, repeats_ends):
    """ONNX has no padding that repeats the ends."""
    if repeats_ends:
        return _padded_by_parts(ctx, x, paddings, repeats_ends)
    return mirror_pad(ctx, x, paddings=paddings, repeats_ends=repeats_ends)


def _padded_by_parts(ctx, x, paddings, repeats_ends):
    """One axis after the other, by slices that are turned around."""
    skipped, shape = 0 if repeats_ends else 1, list(ctx.in_avals[0].shape)
    for axis, (before, after) in enumerate(paddings):
        size = shape[axis]
        parts = [x]
        if before:
            parts.insert(0, _image(ctx, x, shape, axis, skipped, before))
        if after:
            parts.append(_image(ctx, x, shape, axis, size - skipped - after, after))
        if len(parts) > 1:
            x = move("ConcatV2", parts, constant(axis, "int32"))
            shape[axis] = size + before + after
    return x


def _image(ctx, x, shape, axis, start, size):
    """Some elements along an axis, in reverse order."""
    starts = [start if i == axis else 0 for i in range(len(shape))]
    sizes = [size if i == axis else dim for i, dim in enumerate(shape)]
    cut = movement.slice_(ctx, x, shape, starts, sizes)
    return reversed_(ctx, cut, sizes, [axis])


@rule("depth_to_space", target=PORTABLE, traits=Trait.SELECTS)
def depth_to_space(ctx, x, *, block):
    """By parts where there is no op: channels become rows and columns of their own."""
    if _is_taken(ctx, "DepthToSpace"):
        return move("DepthToSpace", x, block_size=block)
    batch, rows, columns, depth = ctx.in_avals[0].shape
    return _moved(ctx, x, (batch, rows, columns, block, block, depth // block**2))


@rule("space_to_depth", target=PORTABLE, traits=Trait.SELECTS)
def space_to_depth(ctx, x, *, block):
    if _is_taken(ctx, "SpaceToDepth"):
        return move("SpaceToDepth", x, block_size=block)
    batch, rows, columns, depth = ctx.in_avals[0].shape
    return _moved(ctx, x, (batch, rows // block, block, columns // block, block, depth))


def _moved(ctx, x, split):
    x = movement.transpose(ctx, movement.reshape(ctx, x, split), (0, 1, 3, 2, 4, 5))
    return movement.reshape(ctx, x, ctx.out_aval.shape)


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
    whole = [
        i
        for i, (low, high, dim) in enumerate(bounds)
        if i not in dimensions and low == 0 and high == dim
    ]
    starts, ends = ([0 if i in whole else b[j] for i, b in enumerate(bounds)] for j in (0, 1))
    mask, shrunk = (sum(1 << i for i in axes) for axes in (whole, dimensions))
    operands = (integers(starts), integers(ends), integers([1] * len(shape)))
    return move(
        "StridedSlice", x, *operands, begin_mask=mask, end_mask=mask, shrink_axis_mask=shrunk
    )
