"""The second program of the demo: random numbers of JAX."""

import jax
import jax.numpy as jnp

# How many numbers of each kind there are.
COUNT = 4


def draw(seed: jax.Array) -> dict[str, jax.Array]:
    """Numbers of `jax.random.bits`, `uniform` and `normal` for the key of a seed, [4] each.

    Bits are returned as their upper and lower halves, int32 from 0 to 65535, since not all runtimes
    return words of 32 bits exactly.

    Args:
      seed: an int32.
    """
    key = jax.random.key(seed)
    bits = jax.random.bits(key, (COUNT,))
    return {
        "high": (bits >> 16).astype(jnp.int32),
        "low": (bits & 0xFFFF).astype(jnp.int32),
        "normal": jax.random.normal(key, (COUNT,)),
        "uniform": jax.random.uniform(key, (COUNT,)),
    }
