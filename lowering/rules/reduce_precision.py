"""Rounding to fewer bits."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from lowering.arrays import narrow_numbers
from lowering.narrow_formats import E8M0, NARROW
from lowering.ops import dtypes
from lowering.registry import Trait, decomposition, legalization, on_promoted


@decomposition("reduce_precision", traits=Trait.OF_BITS)
def reduce_precision(x, *, exponent_bits, mantissa_bits):
    """Rounds to nearest even; what the exponent cannot hold becomes infinite or zero.

    It works on the bits, because a compiler may remove a conversion to a narrower dtype and back.
    """
    info = ml_dtypes.finfo(x.dtype)
    if mantissa_bits >= info.nmant and exponent_bits >= info.nexp:
        return x
    integer = np.dtype(f"uint{info.bits}").type
    bits = lax.bitcast_convert_type(x, integer)
    sign = integer(1 << (info.bits - 1))
    if mantissa_bits < info.nmant:
        dropped = info.nmant - mantissa_bits
        is_odd = lax.shift_right_logical(bits, jnp.full(x.shape, dropped, integer)) & integer(1)
        rounded = bits + (is_odd + integer((1 << (dropped - 1)) - 1))
        bits = rounded & ~integer((1 << dropped) - 1)
    if exponent_bits < info.nexp:
        largest = (1 << (exponent_bits - 1)) - 1
        bias = (1 << (info.nexp - 1)) - 1
        infinity = integer(((1 << info.nexp) - 1) << info.nmant)
        exponent = bits & infinity
        too_large = exponent > integer((bias + largest) << info.nmant)
        too_small = exponent <= integer((bias - largest) << info.nmant)
        magnitude = jnp.where(too_small, integer(0), jnp.where(too_large, infinity, bits & ~sign))
        bits = (bits & sign) | magnitude
    return jnp.where(x != x, x, lax.bitcast_convert_type(bits, x.dtype))


@legalization("reduce_precision", dtypes=dtypes.LOW_PRECISION)
def reduce_precision_of_half_floats(x, **params):
    """What is computed in float32 is rounded to the dtype first, as its bits are."""
    result = reduce_precision(x, **params)
    if result is not x:
        return result
    return narrow_numbers.fit(x, x.dtype, np.dtype(np.float32)).astype(x.dtype)


@on_promoted("reduce_precision", dtypes=NARROW)
def reduce_precision_narrow(x, *, primitive, dtypes, storages, **params):
    """Rounds in float16, whose exponent has as many bits as the longest one of a float8."""
    wide = x if dtypes[0] == E8M0 else x.astype(np.float16)
    result = primitive.bind(wide, **params).astype(x.dtype)
    return narrow_numbers.fit(result, dtypes[0], storages[0])
