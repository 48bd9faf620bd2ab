"""Counts of the bits of integers, for runtimes that have no op for them."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_BYTES = range(256)
_ONES = np.array([byte.bit_count() for byte in _BYTES], np.int32)
_LEADING_ZEROS = np.array([8 - byte.bit_length() for byte in _BYTES], np.int32)


def ones(x: jax.Array, bits: int) -> jax.Array:
    """How many bits are set, by a table for each byte.

    Args:
      x: int32, of which all bits but the lowest `bits` are zero.
      bits: 8, 16 or 32.
    """
    counts = [_found(_ONES, byte) for byte in _bytes(x, bits)]
    return sum(counts[1:], counts[0])


def leading_zeros(x: jax.Array, bits: int) -> jax.Array:
    """How many of the highest bits are zero; the arguments are those of `ones`."""
    lowest, *others = _bytes(x, bits)
    count = _found(_LEADING_ZEROS + np.int32(bits - 8), lowest)
    for i, byte in enumerate(others, start=2):
        count = jnp.where(byte > 0, _found(_LEADING_ZEROS + np.int32(bits - 8 * i), byte), count)
    return count


def ones_in_parallel(x: jax.Array) -> jax.Array:
    """How many bits of uint32 are set: sums of neighbouring bits, of pairs, and so on.

    H. S. Warren, Hacker's Delight, 2nd edition, section 5-1.
    """
    pairs, fours, eights = map(np.uint32, (0x55555555, 0x33333333, 0x0F0F0F0F))
    x = x - ((x >> np.uint32(1)) & pairs)
    x = (x & fours) + ((x >> np.uint32(2)) & fours)
    x = (x + (x >> np.uint32(4))) & eights
    # The highest byte of the product is the sum of all four.
    return (x * np.uint32(0x01010101)) >> np.uint32(24)


def _bytes(x: jax.Array, bits: int) -> Sequence[jax.Array]:
    """The bytes of integers, the lowest first."""
    if bits == 8:
        return [x]
    parts = [x] + [lax.shift_right_arithmetic(x, x.dtype.type(8 * i)) for i in range(1, bits // 8)]
    return [part & x.dtype.type(255) for part in parts]


def _found(table: np.ndarray, byte: jax.Array) -> jax.Array:
    found = jnp.asarray(table).at[byte].get(mode="promise_in_bounds")
    return found.astype(byte.dtype)
