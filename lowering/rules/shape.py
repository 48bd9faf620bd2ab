"""Primitives that give the same elements another shape or order."""

import numpy as np

from lowering.ops import integers, move
from lowering.registry import Trait, rule
from lowering.tensors import movement


@rule("reshape", traits=Trait.BROADCASTS | Trait.SELECTS)
def reshape(ctx, x, *, dimensions, **_):
    """`dimensions` is an order of the axes to take the elements in.

    Ones in front of the shape are left to the ops that use the result, which add them themselves.
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
    """A NumPy view, so that it can be told that its elements are repeated."""
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
    (in_shape, rank) = ctx.in_avals[0].shape, len(shape)
    # TensorFlow aligns the last dimensions, so that only those after the first need a place.
    first = broadcast_dimensions[0] if broadcast_dimensions else rank
    expanded = [1] * (rank - first)
    for dim, axis in zip(in_shape, broadcast_dimensions, strict=True):
        expanded[axis - first] = dim
    return movement.reshape(ctx, x, expanded)


@rule("rev", traits=Trait.SELECTS)
def rev(ctx, x, *, dimensions):
    shape = ctx.out_aval.shape
    if not dimensions:
        return x
    if len(shape) > movement.MAX_RANK:
        return movement.along_axes(
            ctx,
            x,
            shape,
            dimensions,
            shape,
            lambda y, *_: move("ReverseV2", y, integers([1])),
        )
    return move("ReverseV2", x, integers(dimensions))


@rule("tile", traits=Trait.SELECTS)
def tile(ctx, x, *, reps):
    shape, result = ctx.in_avals[0].shape, ctx.out_aval.shape
    axes = [i for i, rep in enumerate(reps) if not isinstance(rep, int) or rep != 1]
    if len(shape) > movement.MAX_RANK:
        return movement.along_axes(
            ctx,
            x,
            shape,
            axes,
            result,
            lambda y, i, *_: move("Tile", y, ctx.shape((1, reps[i], 1))),
        )
    return move("Tile", x, ctx.shape(reps)) if axes else x
