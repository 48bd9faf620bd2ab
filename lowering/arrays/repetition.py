"""Applies a function repeatedly, to each row of an array as often as its count says."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# How often a computation is applied in each turn of the loop for rows with many updates.
_BLOCK = 16


def apply_to_each(
    x: jax.Array, counts: jax.Array, *, apply: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """Applies an elementwise function to each row as often as its count says.

    Where that is often, it is applied in blocks, until a block changes nothing any more. Most
    functions soon reach a fixed point, infinity or NaN.
    """

    def among(is_mine, new, old):
        return lax.select(lax.broadcast_in_dim(is_mine, old.shape, (0,)), new, old)

    def take_block(state):
        x, counts, _ = state
        is_mine = counts >= _BLOCK
        new = x
        for _ in range(_BLOCK):
            new = apply(new)
        is_changed = (new != x) & ((new == new) | (x == x))
        is_changed = among(is_mine, is_changed, jnp.zeros(x.shape, np.bool_))
        left = jnp.where(is_mine, counts - np.int32(_BLOCK), counts)
        return among(is_mine, new, x), left, jnp.any(is_changed)

    def take_turn(state):
        x, counts = state
        return among(counts > 0, apply(x), x), counts - np.int32(1)

    def is_any_left(state):
        return jnp.any(state[1] > 0)

    x, counts, _ = lax.while_loop(
        lambda state: state[2] & jnp.any(state[1] >= _BLOCK), take_block, (x, counts, np.True_)
    )
    return lax.while_loop(is_any_left, take_turn, (x, counts & np.int32(_BLOCK - 1)))[0]
