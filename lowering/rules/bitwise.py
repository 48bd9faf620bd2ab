"""Bitwise and logical primitives."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.formats import narrow, rounding
from lowering.ops import cast, constant, dtypes, emit
from lowering.registry import Trait, decomposition, rule
from lowering.rules.unary import register_ops

register_ops({"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor"}, traits=Trait.MONOID)
register_ops({"not": "Invert"})
register_ops(
    {"and": "LogicalAnd", "or": "LogicalOr", "xor": "NotEqual", "not": "LogicalNot"},
    dtypes=dtypes.BOOL,
)


@rule("population_count")
def population_count(ctx, x):
    return cast(emit("PopulationCount", x), x.dtype)


@rule("population_count", dtypes=dtypes.NARROW)
def population_count_narrow(ctx, x):
    """XLA counts a number of four bits as if it had eight, but one of two bits as it is."""
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
    """Sets the bits below the highest set bit too, and counts the bits that are still zero."""
    for exponent in range(np.iinfo(x.dtype).bits.bit_length() - 1):
        x = x | lax.shift_right_logical(x, jnp.asarray(1 << exponent, x.dtype))
    return lax.population_count(~x)
