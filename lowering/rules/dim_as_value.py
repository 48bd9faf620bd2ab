"""The values of symbolic dimensions."""

import tensorflow as tf

from lowering.ops import cast, constant, dtypes
from lowering.registry import Trait, rule


@rule("dim_as_value", traits=Trait.NOT_FOLDED)
def dim_as_value(ctx, *, dim):
    return _value(ctx, dim)


@rule("dimension_size")
def dimension_size(ctx, x, *, dimension):
    return _value(ctx, ctx.in_avals[0].shape[dimension])


def _value(ctx, dim):
    size = ctx.size(dim)
    dtype = dtypes.to_tf(ctx.out_aval.dtype)
    return constant(size, dtype) if isinstance(size, int) else cast(size, dtype)


@rule("shape_assertion")
def shape_assertion(ctx, holds, *values, error_message):
    """An assertion of the graph, which XLA leaves out where it compiles."""
    tf.debugging.Assert(holds, [error_message, *values])
    return []
