"""`jnp.searchsorted`: positions of numbers among sorted ones; see `passes.fusion.functions`."""

import jax.numpy as jnp
import numpy as np

from lowering.registry import rule
from lowering.targets import PORTABLE


@rule("search", target=PORTABLE, keep_constants=True)
def search(ctx, x, y, *, side, dtype):
    """Sorted numbers that are known are all compared; others are searched as in JAX.

    What JAX finds among numbers that are not sorted depends on the order of its comparisons.
    """
    is_sorted = isinstance(x, np.ndarray) and np.array_equal(x, np.sort(x), x.dtype.kind == "f")
    fun = _compared if is_sorted else _by_binary_search
    return ctx.lower(fun, x, y, avals=ctx.in_avals, side=side, dtype=dtype)


def _by_binary_search(x, y, *, side, dtype):
    return jnp.searchsorted(x, y, side=side).astype(dtype)


def _compared(x, y, *, side, dtype):
    """How many numbers are less, or at most as large; NaN comes after all of them."""
    compare = {"left": jnp.less, "right": jnp.less_equal}[side]
    found = jnp.sum(compare(x, y[..., None]), axis=-1, dtype=dtype)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return found
    is_less = x == x if side == "left" else jnp.ones_like(x, bool)
    return jnp.where(y == y, found, jnp.sum(is_less, dtype=dtype))
