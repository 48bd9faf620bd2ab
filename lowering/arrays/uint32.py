"""uint32 in int32, for targets that lack uint32: see `passes.legalize.bitcast_uint32`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

UINT32, INT32 = np.dtype(np.uint32), np.dtype(np.int32)


def bits_of(x: jax.Array) -> jax.Array:
    """The int32 with the same bits as uint32."""
    return lax.bitcast_convert_type(x, INT32)


def of_bits(x: jax.Array) -> jax.Array:
    """The uint32 with the same bits as int32."""
    return lax.bitcast_convert_type(x, UINT32)


def indices(x: jax.Array) -> jax.Array:
    """Indices as int32 if they are uint32; those beyond its range become out of bounds, too."""
    if x.dtype != UINT32:
        return x
    bits = bits_of(x)
    return jnp.where(bits < 0, INT32.type(np.iinfo(INT32).max), bits)
