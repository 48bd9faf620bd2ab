"""Primitives that give the same elements another shape or order."""

import numpy as np

from lowering.ops import integers, move
from lowering.registry import Trait, rule
from lowering.tensors import movement


@rule("reshape", traits=Trait.BROADCASTS | Trait.SELECTS)
def reshape(ctx, x, *, dimensions, **_):
    """Transposes by `dimensions` first, if given.

    Leading dimensions of size one are left out: the ops that use the result broadcast it.
    """
    if dimensions is not None:
        x = movement.transpose(ctx, x, dimensions)
    shape, added = ctx.out_aval.shape, len(ctx.out_aval.shape) - len(ctx.in_avals[0].shape)
    if added > 0 and shape[:added] == (1,) * added:
        shape = shape[added:]
    return movement.reshape(ctx, x, shape)


@rule("squeeze", traits=Trait.SELECTS)
def squeeze(ctx, x, *, dimensions):
    return move("Squeeze", x, axis=list(dimensions)) if dimensions else x


@rule("transpose", traits=Trait.SELECTS)
def transpose(ctx, x, *, permutation):
    return movement.transpose(ctx, x, permutation)


@rule("broadcast_to")
def broadcast_to(ctx, x, *, shape):
    return movement.broadcast(ctx, x, shape)


def _broadcast_view(x, *, shape, broadcast_dimensions, **_):
    """A NumPy view, whose strides of zero tell that its elements are repeated."""
    expanded = [1] * len(shape)
    for size, axis in zip(x.shape, broadcast_dimensions, strict=True):
        expanded[axis] = size
    return np.broadcast_to(x.reshape(expanded), shape)


@rule(
    "broadcast_in_dim",
    traits=Trait.BROADCASTS | Trait.SELECTS | Trait.NOT_HOISTED,
    fold=_broadcast_view,
)
def broadcast_in_dim(ctx, x, *dyn_shape, shape, broadcast_dimensions, **_):
    """Dimension i of the operand becomes dimension `broadcast_dimensions[i]` of the result.

    The broadcast itself is left to the ops that use the result.
    """
    # TensorFlow aligns the last dimensions, so that no leading dimensions of size one are needed.
    first = broadcast_dimensions[0] if broadcast_dimensions else len(shape)
    expanded = [1] * (len(shape) - first)
    for dim, axis in zip(ctx.in_avals[0].shape, broadcast_dimensions, strict=True):
        expanded[axis - first] = dim
    return movement.reshape(ctx, x, expanded)


@rule("rev", traits=Trait.SELECTS)
def rev(ctx, x, *, dimensions):
    return reversed_(ctx, x, ctx.out_aval.shape, dimensions)


def reversed_(ctx, x, shape, dimensions):
    """`x`, which has the dimensions `shape`, in reverse order along some of them."""
    # `tflite.runtime_quirks.reverse_of_axes_apart`.
    is_apart = ctx.target.is_consumer and len(dimensions) > 1
    if len(shape) <= ctx.target.max_rank("ReverseV2") and not is_apart:
        return move("ReverseV2", x, integers(dimensions)) if dimensions else x

    def reverse_axis(y, *_):
        return move("ReverseV2", y, integers([1]))

    return movement.along_axes(ctx, x, shape, dimensions, shape, reverse_axis)


@rule("tile", traits=Trait.SELECTS)
def tile(ctx, x, *, reps):
    axes = [i for i, rep in enumerate(reps) if not isinstance(rep, int) or rep != 1]
    if len(reps) <= ctx.target.max_rank("Tile"):
        return move("Tile", x, ctx.shape(reps)) if axes else x

    def tile_axis(y, axis, *_):
        return move("Tile", y, ctx.shape((1, reps[axis], 1)))

    return movement.along_axes(ctx, x, ctx.in_avals[0].shape, axes, ctx.out_aval.shape, tile_axis)
