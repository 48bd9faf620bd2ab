"""Floats: the precision of elementwise functions, and their neighbours."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
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


def next_after(x: jax.Array, y: jax.Array) -> jax.Array:
    """Adds 1 to the bits, or -1; from a zero, gives the least subnormal with the sign of y."""
    x, y = jnp.broadcast_arrays(x, y)
    integer = np.dtype(f"int{ml_dtypes.finfo(x.dtype).bits}").type
    sign = int(ml_dtypes.iinfo(integer).min)
    x_bits, y_bits = lax.bitcast_convert_type(x, integer), lax.bitcast_convert_type(y, integer)
    x_size, y_size = x_bits & ~sign, y_bits & ~sign
    inwards = (x_size > y_size) | ((x_bits ^ y_bits) < 0)
    stepped = jnp.where(inwards, x_bits - integer(1), x_bits + integer(1))
    bits = jnp.where(x_size == 0, (y_bits & sign) | integer(1), stepped)
    result = jnp.where(x == y, y, lax.bitcast_convert_type(bits, x.dtype))
    return jnp.where((x != x) | (y != y), jnp.asarray(jnp.nan, x.dtype), result)
