"""Primitives that join arrays, or take them apart."""

from lowering.ops import constant, move
from lowering.registry import Trait, rule


@rule("concatenate", traits=Trait.SELECTS)
def concatenate(ctx, *xs, dimension):
    # TensorFlow's kernel would copy the only array that is not empty, too.
    dims = [aval.shape[dimension] for aval in ctx.in_avals]
    parts = [x for x, dim in zip(xs, dims, strict=True) if not _is_zero(dim)]
    if len(parts) <= 1:
        return parts[0] if parts else xs[0]
    return move("ConcatV2", parts, constant(dimension, "int32"))


def _is_zero(dim):
    return isinstance(dim, int) and dim == 0


@rule("split", traits=Trait.SELECTS)
def split(ctx, x, *, sizes, axis):
    if len(sizes) == 1:
        return [x]
    if all(size == sizes[0] for size in sizes):
        return move("Split", constant(axis, "int32"), x, num_split=len(sizes))
    return move("SplitV", x, ctx.shape(sizes), constant(axis, "int32"), num_split=len(sizes))


@rule("stack", traits=Trait.SELECTS)
def stack(ctx, *xs, axis):
    return move("Pack", list(xs), axis=axis)


@rule("unstack", traits=Trait.SELECTS)
def unstack(ctx, x, *, axis):
    return move("Unpack", x, num=len(ctx.out_avals), axis=axis)
