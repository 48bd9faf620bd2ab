"""Sizes of numbers, and scaling of matrices so that squares neither overflow nor underflow."""

import jax.numpy as jnp
from jax import Array, lax


def moderate(a: Array) -> tuple[Array, Array]:
    """A real factor, and the matrix divided by it.

    The factor is 1 if the largest element is in the safe range or is not finite.
    """
    largest = jnp.max(jnp.maximum(abs(jnp.real(a)), abs(jnp.imag(a))), initial=0)
    info = jnp.finfo(a.dtype)
    low, high = info.tiny**0.5 / info.eps, info.max**0.5 * info.eps
    is_extreme = ((largest > 0) & (largest < low)) | ((largest > high) & jnp.isfinite(largest))
    factor = jnp.where(is_extreme, largest, 1).astype(largest.dtype)
    if not jnp.issubdtype(a.dtype, jnp.complexfloating):
        return factor, a / factor
    return factor, lax.complex(jnp.real(a) / factor, jnp.imag(a) / factor)


def size(x: Array) -> Array:
    """|re| + |im|, by which LAPACK compares complex numbers."""
    if not jnp.issubdtype(x.dtype, jnp.complexfloating):
        return abs(x)
    return abs(jnp.real(x)) + abs(jnp.imag(x))


def square(x: Array) -> Array:
    """|x|^2."""
    return jnp.real(x) * jnp.real(x) + jnp.imag(x) * jnp.imag(x)


def hypot(x: Array, y: Array) -> Array:
    """sqrt(x^2 + y^2) of real numbers; the squares neither overflow nor underflow."""
    return lax.abs(lax.complex(x, y))


def scaled(a: Array) -> tuple[Array, Array]:
    """The same as `moderate`, or NaN and zeros if an element of `a` is not finite."""
    is_finite = jnp.all(jnp.isfinite(a))
    factor, a = moderate(jnp.where(is_finite, a, 0))
    return jnp.where(is_finite, factor, jnp.nan), a
