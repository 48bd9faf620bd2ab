"""Words (uint32), for targets that have int32 alone: see `passes.legalize.bitcasts`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# What PRNG keys and random bits are made of, and the integers with the same bits.
WORD, BITS = np.dtype(np.uint32), np.dtype(np.int32)


def bits_of(x: jax.Array) -> jax.Array:
    """The int32 with the bits of words."""
    return lax.bitcast_convert_type(x, BITS)


def of_bits(x: jax.Array) -> jax.Array:
    """The words with the bits of int32."""
    return lax.bitcast_convert_type(x, WORD)


def places(x: jax.Array) -> jax.Array:
    """Indices that may be words, as int32: what that does not hold is behind every array."""
    if x.dtype != WORD:
        return x
    bits = bits_of(x)
    return jnp.where(bits < 0, BITS.type(np.iinfo(BITS).max), bits)
