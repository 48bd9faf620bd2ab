"""The precision of elementwise functions."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from lowering import avals


def at_least_float32(fun: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function whose operands are broadcast, and of float32 if they were shorter.

    Args:
      fun: a function of arrays of the same shape and dtype, float32 or float64.
    """

    @functools.wraps(fun)
    def widened(*operands: jax.Array) -> jax.Array:
        operands = tuple(jnp.broadcast_arrays(*operands))
        dtype = operands[0].dtype
        if dtype not in avals.HALF_FLOATS:
            return fun(*operands)
        wide = fun(*(lax.convert_element_type(x, jnp.float32) for x in operands))
        return lax.convert_element_type(wide, dtype)

    return widened
