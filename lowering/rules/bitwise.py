"""Bitwise and logical primitives."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.formats import narrow, rounding
from lowering.ops import cast, constant, dtypes, emit
from lowering.registry import Trait, decomposition, rule


@rule("and", traits=Trait.ELEMENTWISE | Trait.MONOID)
def and_(ctx, x, y):
    return emit("BitwiseAnd", x, y)


@rule("or", traits=Trait.ELEMENTWISE | Trait.MONOID)
def or_(ctx, x, y):
    return emit("BitwiseOr", x, y)


@rule("xor", traits=Trait.ELEMENTWISE | Trait.MONOID)
def xor(ctx, x, y):
    return emit("BitwiseXor", x, y)


@rule("not", traits=Trait.ELEMENTWISE)
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


@rule("population_count", dtypes=dtypes.NARROW)
def population_count_narrow(ctx, x):
    """XLA counts the bits of four as those of eight, and those of two as they are."""
    dtype = ctx.in_avals[0].dtype
    if rounding.width(dtype) == 2:
        return rounding.from_bits(narrow.run_on_bits(ctx, x), dtype)
    return narrow.apply(ctx, x)


@rule("clz", dtypes=dtypes.NARROW)
def clz_narrow(ctx, x):
    dtype = ctx.in_avals[0].dtype
    bits = narrow.run_on_bits(ctx, x)
    unused = constant(8 - rounding.width(dtype), np.uint8)
    return rounding.from_bits(emit("Sub", bits, unused, modular=True), dtype)


@decomposition("clz")
def clz(x):
    """The bits below the highest set bit are set too, and the others counted."""
    bits = np.iinfo(x.dtype).bits
    shift = 1
    while shift < bits:
        x = x | lax.shift_right_logical(x, jnp.asarray(shift, x.dtype))
        shift *= 2
    return lax.population_count(~x)
