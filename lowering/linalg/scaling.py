"""Matrices scaled into the range where squares neither overflow nor underflow."""

import jax
import jax.numpy as jnp
from jax import lax

Array = jax.Array


def moderate(a: Array) -> tuple[Array, Array]:
    """A real factor, one for most matrices, and the matrix divided by it.

    The factor of a matrix with an element that is not finite is one.
    """
    largest = jnp.max(jnp.maximum(abs(jnp.real(a)), abs(jnp.imag(a))), initial=0)
    info = jnp.finfo(a.dtype)
    low, high = info.tiny**0.5 / info.eps, info.max**0.5 * info.eps
    is_extreme = ((largest > 0) & (largest < low)) | ((largest > high) & jnp.isfinite(largest))
    factor = jnp.where(is_extreme, largest, 1).astype(largest.dtype)
    if not jnp.issubdtype(a.dtype, jnp.complexfloating):
        return factor, a / factor
    return factor, lax.complex(jnp.real(a) / factor, jnp.imag(a) / factor)


def hypot(x: Array, y: Array) -> Array:
    """The Euclidean norm of two real numbers, without overflow or underflow of the squares."""
    return lax.abs(lax.complex(x, y))


def scaled(a: Array) -> tuple[Array, Array]:
    """Like `moderate`, but of a matrix with an element that is not finite NaN and zeros."""
    is_finite = jnp.all(jnp.isfinite(a))
    factor, a = moderate(jnp.where(is_finite, a, 0))
    return jnp.where(is_finite, factor, jnp.nan), a
