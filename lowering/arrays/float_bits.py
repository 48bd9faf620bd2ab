"""The bits of float32 by arithmetic, for consumers of graphs that have no bitcast.

NaN has the bits of one NaN, whatever its own are.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_MANTISSA = 23
_BIAS = 127
_INFINITY = np.array(np.inf, np.float32).view(np.int32).item()
_NAN = np.array(np.nan, np.float32).view(np.int32).item()

# The numbers with each exponent and no further digits: infinity for the last one, and the least
# normal number also for the first one, whose numbers are subnormal.
_POWERS = np.append(np.ldexp(1.0, np.maximum(np.arange(255), 1) - _BIAS), np.inf).astype(np.float32)


def of_bits(bits: jax.Array) -> jax.Array:
    """The float32 of each int32 of bits."""
    size = bits & np.int32(0x7FFFFFFF)
    exponent = lax.shift_right_arithmetic(size, np.int32(_MANTISSA))
    digits = (size & np.int32((1 << _MANTISSA) - 1)).astype(np.float32) * np.float32(
        2.0**-_MANTISSA
    )
    first = (exponent > 0).astype(np.float32)
    value = jnp.asarray(_POWERS).at[exponent].get(mode="promise_in_bounds") * (first + digits)
    value = jnp.where(size > _INFINITY, np.float32(np.nan), value)
    return jnp.where(bits < 0, -value, value)


def bits_of(x: jax.Array) -> jax.Array:
    """The bits of each float32, as int32; those of zeros are positive.

    The exponent is the number of powers that are not larger, found in eight steps.
    """
    size = lax.abs(x)
    exponent = jnp.ones(x.shape, np.int32)
    powers = jnp.asarray(_POWERS)
    for step in (128, 64, 32, 16, 8, 4, 2, 1):
        further = lax.min(exponent + np.int32(step), np.int32(254))
        is_reached = powers.at[further].get(mode="promise_in_bounds") <= size
        exponent = jnp.where(is_reached, further, exponent)
    is_normal = size >= _POWERS[1]
    # In two steps, as the inverse of the largest power is subnormal.
    half = lax.shift_right_arithmetic(exponent - np.int32(_BIAS), np.int32(1))
    rest = exponent - np.int32(_BIAS) - half
    inverse = (powers.at[np.int32(_BIAS) - n].get(mode="promise_in_bounds") for n in (half, rest))
    digits = size * next(inverse) * next(inverse)
    mantissa = (digits * np.float32(2.0**_MANTISSA)).astype(np.int32)
    normal = mantissa + (exponent - np.int32(1)) * np.int32(1 << _MANTISSA)
    bits = jnp.where(is_normal, normal, mantissa)
    bits = jnp.where(size == np.inf, np.int32(_INFINITY), bits)
    bits = jnp.where(x != x, np.int32(_NAN), bits)
    return jnp.where(x < 0, bits + np.int32(np.iinfo(np.int32).min), bits)
