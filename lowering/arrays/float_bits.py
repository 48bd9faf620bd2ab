"""The bits of floats by arithmetic, for runtimes that have no bitcast.

Those of float32 are found by arithmetic alone; those of float16 and bfloat16 by those of float32.

NaN has the bits of one NaN, whatever its own are.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_MANTISSA = 23
_BIAS = 127
# The exponent of infinity and NaN.
_LAST = 255

# The numbers with each exponent and no further digits: infinity for the last one, and the least
# normal number also for the first one, whose numbers are subnormal.
_POWERS = np.append(np.ldexp(1.0, np.maximum(np.arange(255), 1) - _BIAS), np.inf).astype(np.float32)


def of_bits(bits: jax.Array) -> jax.Array:
    """The float32 of each int32 of bits."""
    size = bits & np.int32(0x7FFFFFFF)
    exponent = lax.shift_right_arithmetic(size, np.int32(_MANTISSA))
    return of_fields(bits < 0, exponent, size & np.int32((1 << _MANTISSA) - 1))


def of_fields(negative: jax.Array, exponent: jax.Array, mantissa: jax.Array) -> jax.Array:
    """The float32 of whether it is negative, its biased exponent and its mantissa, as int32."""
    digits = mantissa.astype(np.float32) * np.float32(2.0**-_MANTISSA)
    first = (exponent > 0).astype(np.float32)
    value = jnp.asarray(_POWERS).at[exponent].get(mode="promise_in_bounds") * (first + digits)
    is_nan = (exponent == _LAST) & (mantissa > 0)
    value = jnp.where(is_nan, np.float32(np.nan), value)
    return jnp.where(negative, -value, value)


def is_negative(x: jax.Array) -> jax.Array:
    """Whether each float32 has a negative sign; zeros have that of their inverse."""
    return (x < 0) | (np.float32(1) / x < 0)


def bits_of(x: jax.Array) -> jax.Array:
    """The bits of each float32, as int32."""
    negative, exponent, mantissa = fields(x)
    bits = exponent * np.int32(1 << _MANTISSA) + mantissa
    return jnp.where(negative, bits + np.int32(np.iinfo(np.int32).min), bits)


def fields(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Whether each float32 is negative, its biased exponent and its mantissa, as int32.

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
    # In two steps, as the inverse of the largest power is subnormal. TensorFlow's optimizer may
    # multiply in any order, and none of the products overflows.
    half = lax.shift_right_arithmetic(exponent - np.int32(_BIAS), np.int32(1))
    rest = exponent - np.int32(_BIAS + _MANTISSA) - half
    inverse = (powers.at[np.int32(_BIAS) - n].get(mode="promise_in_bounds") for n in (half, rest))
    mantissa = (size * next(inverse) * next(inverse)).astype(np.int32)
    mantissa = jnp.where(is_normal, mantissa - np.int32(1 << _MANTISSA), mantissa)
    mantissa = jnp.where(size < np.inf, mantissa, np.int32(0))
    mantissa = jnp.where(x != x, np.int32(1 << (_MANTISSA - 1)), mantissa)
    exponent = jnp.where(is_normal, exponent, np.int32(0))
    exponent = jnp.where(size < np.inf, exponent, np.int32(_LAST))
    return is_negative(x), exponent, mantissa


# The difference between the biases of float32 and float16; the least normal and the least subnormal
# number of float16.
_BIAS_16 = 112
_NORMAL_16 = 2.0**-14
_LEAST_16 = 2.0**-24


def bits_of_short(x: jax.Array) -> jax.Array:
    """The bits of each float16 or bfloat16, as int32 from 0 to 65535."""
    # Targets that compute in float32 have not rounded the number yet.
    info = jnp.finfo(x.dtype)
    number = lax.reduce_precision(x, info.nexp, info.nmant).astype(np.float32)
    bits = lax.bitcast_convert_type(number, np.int32)
    if x.dtype == jnp.bfloat16:
        return lax.shift_right_logical(bits, np.int32(16))
    size = lax.abs(number)
    normal = (bits & np.int32(0x7FFFFFFF)) - np.int32(_BIAS_16 << _MANTISSA)
    normal = lax.shift_right_arithmetic(normal, np.int32(13))
    small = (lax.min(size, np.float32(_NORMAL_16)) / np.float32(_LEAST_16)).astype(np.int32)
    found = jnp.where(size < _NORMAL_16, small, normal)
    found = jnp.where(size == np.inf, np.int32(0x7C00), found)
    found = jnp.where(number != number, np.int32(0x7E00), found)
    return jnp.where(bits < 0, found + np.int32(0x8000), found)


def of_short_bits(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    """The inverse of `bits_of_short`; `dtype` is float16 or bfloat16."""
    if dtype == jnp.bfloat16:
        return lax.bitcast_convert_type(bits << np.int32(16), np.float32).astype(dtype)
    size = bits & np.int32(0x7FFF)
    normal = (size << np.int32(13)) + np.int32(_BIAS_16 << _MANTISSA)
    value = lax.bitcast_convert_type(normal, np.float32)
    small = size.astype(np.float32) * np.float32(_LEAST_16)
    value = jnp.where(size < 0x0400, small, value)
    value = jnp.where(size == 0x7C00, np.float32(np.inf), value)
    value = jnp.where(size > 0x7C00, np.float32(np.nan), value)
    return jnp.where(bits >= 0x8000, -value, value).astype(dtype)
