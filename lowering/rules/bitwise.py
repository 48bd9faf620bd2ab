"""Bitwise and logical primitives."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.ops import cast, dtypes, emit
from lowering.registry import decomposition, rule


@rule("and")
def and_(ctx, x, y):
    return emit("BitwiseAnd", x, y)


@rule("or")
def or_(ctx, x, y):
    return emit("BitwiseOr", x, y)


@rule("xor")
def xor(ctx, x, y):
    return emit("BitwiseXor", x, y)


@rule("not")
def not_(ctx, x):
    return emit("Invert", x)


@rule("and", dtypes=dtypes.BOOL)
def and_bool(ctx, x, y):
    return emit("LogicalAnd", x, y)


@rule("or", dtypes=dtypes.BOOL)
def or_bool(ctx, x, y):
    return emit("LogicalOr", x, y)


@rule("xor", dtypes=dtypes.BOOL)
def xor_bool(ctx, x, y):
    return emit("NotEqual", x, y)


@rule("not", dtypes=dtypes.BOOL)
def not_bool(ctx, x):
    return emit("LogicalNot", x)


@rule("population_count")
def population_count(ctx, x):
    return cast(emit("PopulationCount", x), x.dtype)


@decomposition("clz")
def clz(x):
    """The bits below the highest set bit are set too, and the others counted."""
    bits = np.iinfo(x.dtype).bits
    shift = 1
    while shift < bits:
        x = x | lax.shift_right_logical(x, jnp.asarray(shift, x.dtype))
        shift *= 2
    return lax.population_count(~x)
