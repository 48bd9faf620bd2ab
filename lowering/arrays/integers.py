"""Arithmetic of integers that is made of simpler arithmetic: quotients, and halves of products."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.narrow_formats import SIGNED, width


def divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """The quotient of uint32, by a division of int32.

    That of half the dividend, twice, is at most one too small.
    H. S. Warren, Hacker's Delight, 2nd edition, section 9-3.
    """
    x, y = jnp.broadcast_arrays(x, y)
    one = np.uint32(1)
    signed_y = lax.bitcast_convert_type(y, np.int32)
    half = lax.bitcast_convert_type(x >> one, np.int32)
    safe = jnp.where(signed_y > 0, signed_y, np.int32(1))
    quotient = lax.bitcast_convert_type(lax.div(half, safe), np.uint32) << one
    quotient = quotient + (x - quotient * y >= y).astype(np.uint32)
    # A divisor with the highest bit goes into the dividend once or not at all.
    quotient = jnp.where(signed_y < 0, (x >= y).astype(np.uint32), quotient)
    return jnp.where(signed_y == 0, ~np.uint32(0), quotient)


def remainder(x: jax.Array, y: jax.Array) -> jax.Array:
    """The remainder of uint32."""
    return jnp.where(y == 0, x, x - lax.div(x, y) * y)


def divide_by_floats(x: jax.Array, y: jax.Array) -> jax.Array:
    """The quotient of uint32, by divisions in float32."""
    return jnp.where(y == 0, ~np.uint32(0), _divided_by_floats(x, y)[0])


def remainder_by_floats(x: jax.Array, y: jax.Array) -> jax.Array:
    """The remainder of uint32, by divisions in float32."""
    return jnp.where(y == 0, x, _divided_by_floats(x, y)[1])


def _divided_by_floats(x, y):
    """The quotient and the remainder, by divisions whose errors may be 2^-21.

    Quotients that are made smaller by more than that are too small by no more than 2^13, and after
    a second step by at most one.
    """
    divisor = lax.max(y.astype(np.float32), np.float32(1))
    quotient, rest = np.uint32(0), x
    for _ in range(2):
        least = rest.astype(np.float32) / divisor * np.float32(1 - 2.0**-20)
        step = least.astype(np.uint32)
        quotient, rest = quotient + step, rest - step * y
    is_too_small = rest >= y
    quotient = quotient + is_too_small.astype(np.uint32)
    return quotient, jnp.where(is_too_small, rest - y, rest)


def upper_half(x: jax.Array, y: jax.Array) -> jax.Array:
    """The upper half of the product, without integers of more bits than these or 32.

    H. S. Warren, Hacker's Delight, 2nd edition, section 8-2.
    """
    bits = np.iinfo(x.dtype).bits
    if bits < 32:
        return (x.astype(np.int32) * y.astype(np.int32) >> bits).astype(x.dtype)
    half, mask = (x.dtype.type(number) for number in (bits // 2, (1 << bits // 2) - 1))
    x_low, x_high, y_low, y_high = x & mask, x >> half, y & mask, y >> half
    low = lax.shift_right_logical(x_low * y_low, jnp.full(x.shape, half))
    middle = x_high * y_low + low
    upper = x_low * y_high + (middle & mask)
    return x_high * y_high + (middle >> half) + (upper >> half)


def in_signed_order(x: jax.Array) -> jax.Array:
    """uint32 or uint64 as the signed integers that have their order; see `from_signed_order`."""
    signed = np.dtype(f"int{8 * x.dtype.itemsize}")
    return lax.bitcast_convert_type(x, signed) + signed.type(np.iinfo(signed).min)


def from_signed_order(x: jax.Array) -> jax.Array:
    """The inverse of `in_signed_order`."""
    bits = x + x.dtype.type(np.iinfo(x.dtype).min)
    return lax.bitcast_convert_type(bits, np.dtype(f"u{x.dtype.name}"))


def on_signed_order(fun: Callable[..., Any], *operands: jax.Array, **params: Any) -> jax.Array:
    """The result of a function that orders unsigned integers, on signed ones in their order."""
    return from_signed_order(fun(*map(in_signed_order, operands), **params))


def upper_half_of_int32(x: jax.Array, y: jax.Array) -> jax.Array:
    """As `upper_half`, by that of uint32: a negative factor is 2^32 too large as one of these."""
    zero = np.int32(0)
    unsigned = (lax.bitcast_convert_type(z, np.uint32) for z in (x, y))
    high = lax.bitcast_convert_type(lax.mulhi(*unsigned), np.int32)
    return high - jnp.where(x < 0, y, zero) - jnp.where(y < 0, x, zero)


def upper_half_of_narrow(
    x: jax.Array, y: jax.Array, *, dtypes: Sequence[np.dtype], **_: Any
) -> jax.Array:
    """The upper two of four bits, but for four bits the upper eight of sixteen, as in XLA.

    Of the latter, the lower eight hold the product, and the upper ones repeat its sign.
    """
    product = x * y
    if width(dtypes[0]) == 2:
        return product >> product.dtype.type(2)
    return product >> product.dtype.type(7) if dtypes[0] in SIGNED else lax.full_like(x, 0)
