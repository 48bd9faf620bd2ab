"""Inverse trigonometric and hyperbolic functions of complex numbers, from those of real numbers.

For runtimes of graphs that have no complex numbers. Sines and cosines: T. E. Hull, T. F.
Fairgrieve and P. T. P. Tang, "Implementing the complex arcsine and arccosine functions using
exception handling", ACM Transactions on Mathematical Software 23, 1997. Tangents: W. Kahan, "Branch
cuts for complex elementary functions", 1987. On branch cuts zeros have the signs that JAX heeds.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.arrays.complex_math import atan_argument, atanh_argument, log_size, size_of_parts
from lowering.arrays.float_bits import is_negative

# Beyond these bounds the arc sine and the logarithm of its other part have no digits left.
_STEEP = 0.6417
_LARGE_SIZE = 1.5


class _Bounds(NamedTuple):
    """What is large or small beside one, in the precision of a dtype.

    Attributes:
      huge: from this size on, radicands equal their squares up to rounding.
      near: within this distance of a branch point, its inverse squared equals one more than that.
      negligible: below this, times the distance to a branch point, the imaginary part changes
        nothing but itself.
    """

    huge: float
    near: float
    negligible: float


_BOUNDS = {
    np.dtype(np.float32): _Bounds(2.0**20, 2.0**-20, 2.0**-24),
    np.dtype(np.float64): _Bounds(2.0**56, 2.0**-30, 2.0**-53),
}


def asin(z: jax.Array) -> jax.Array:
    """The arc sine; its cut is the real axis beyond 1, where a zero counts as positive."""
    x, y = lax.real(z), lax.imag(z)
    angle, _, other = _arcs(x, y)
    return lax.complex(_with_sign(angle, x < 0), _with_sign(other, y < 0))


def acos(z: jax.Array) -> jax.Array:
    """The arc cosine; its cut is that of the arc sine."""
    x, y = lax.real(z), lax.imag(z)
    _, angle, other = _arcs(x, y)
    angle = jnp.where(x < 0, x.dtype.type(np.pi) - angle, angle)
    return lax.complex(angle, _with_sign(other, y >= 0))


def asinh(z: jax.Array) -> jax.Array:
    """The inverse of the hyperbolic sine: -i asin(i z)."""
    x, y = lax.real(z), lax.imag(z)
    turned = asin(lax.complex(-y, x))
    return lax.complex(lax.imag(turned), -lax.real(turned))


def acosh(z: jax.Array) -> jax.Array:
    """The inverse of the hyperbolic cosine: i acos(z) or -i acos(z), in the right half plane."""
    x, y = lax.real(z), lax.imag(z)
    _, angle, other = _arcs(x, y)
    angle = jnp.where(x < 0, x.dtype.type(np.pi) - angle, angle)
    return lax.complex(other, _with_sign(angle, y < 0))


def atanh(z: jax.Array) -> jax.Array:
    """The inverse of the hyperbolic tangent: -i atan(i z)."""
    z = atanh_argument(z)
    x, y = lax.real(z), lax.imag(z)
    real, imag = _arc_tangent(y, x)
    # -i times the arc tangent of i z.
    return lax.complex(imag, _with_sign(real, is_negative(y)))


def atan(z: jax.Array) -> jax.Array:
    """The arc tangent; its cut is the imaginary axis beyond i."""
    z = atan_argument(z)
    x, y = lax.real(z), lax.imag(z)
    real, imag = _arc_tangent(x, y)
    return lax.complex(_with_sign(real, is_negative(x)), imag)


def _arc_tangent(x: jax.Array, signed_y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The size of the real part of the arc tangent, and its imaginary part."""
    x, y = lax.abs(x), lax.abs(signed_y)
    number, bounds = x.dtype.type, _BOUNDS[x.dtype]
    large, small = lax.max(x, y), lax.min(x, y)
    is_huge = large > bounds.huge
    # Zeros in place of numbers whose squares overflow.
    safe_x, safe_y = (jnp.where(is_huge, number(0), part) for part in (x, y))
    beside = 1 - safe_y
    distance = size_of_parts(beside, safe_x)
    imag = 0.25 * lax.log1p(4 * safe_y / distance / distance)
    # Near the branch point the quotient may overflow; 1 is nothing beside it.
    is_near = distance < bounds.near
    imag = jnp.where(is_near, 0.5 * (number(np.log(2)) - lax.log(distance)), imag)
    real = 0.5 * lax.atan2(2 * safe_x, beside * (1 + safe_y) - safe_x * safe_x)
    ratio = small / jnp.where((large == 0) | (large == np.inf), number(1), large)
    along = jnp.where(y >= x, number(1), ratio) / jnp.where(large == 0, number(1), large)
    imag = jnp.where(is_huge, along / (1 + ratio * ratio), imag)
    real = jnp.where(is_huge, number(np.pi / 2), real)
    return real, _with_sign(imag, signed_y < 0)


def _arcs(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The real parts of arc sine and arc cosine of |x| + i |y|, and the size of their imaginary."""
    x, y = lax.abs(x), lax.abs(y)
    number = x.dtype.type
    is_huge = lax.max(x, y) > _BOUNDS[x.dtype].huge
    inner_x, inner_y = (jnp.where(is_huge, number(0), part) for part in (x, y))
    sine, cosine, other = _arcs_of_moderate(inner_x, inner_y)
    large, small = lax.max(x, y), lax.min(x, y)
    size = log_size(lax.max(large, number(1)), small)
    return (
        jnp.where(is_huge, lax.atan2(x, y), sine),
        jnp.where(is_huge, lax.atan2(y, x), cosine),
        jnp.where(is_huge, number(np.log(2)) + size, other),
    )


def _arcs_of_moderate(x, y):
    """`_arcs` of numbers whose squares do not overflow."""
    number = x.dtype.type
    r, s = size_of_parts(x + 1, y), size_of_parts(x - 1, y)
    a = lax.max(0.5 * (r + s), number(1))
    b = lax.min(x / a, number(1))
    is_inside = x <= 1
    # The distances of a to x and to 1, without what cancels.
    before, behind = r + x + 1, s + lax.abs(x - 1)
    safe = jnp.where(behind == 0, number(1), behind)
    over_before, over_behind = y * (y / before), y * (y / safe)
    a_x = a + x
    inner = lax.sqrt(0.5 * a_x * (over_before + behind))
    outer = y * lax.sqrt(0.5 * (a_x / before + a_x / safe))
    leg = jnp.where(is_inside, inner, outer)
    leg = jnp.where(b <= _STEEP, lax.sqrt((1 - b) * (1 + b)), leg)
    side = jnp.where(b <= _STEEP, b, x)
    above = 0.5 * (over_before + jnp.where(is_inside, over_behind, behind))
    other = lax.log1p(above + lax.sqrt(above * (a + 1)))
    other = jnp.where(a > _LARGE_SIZE, lax.log(a + lax.sqrt(a * a - 1)), other)
    # Where the square of y vanishes, y itself is in proportion to the imaginary part.
    is_flat = (x < 1) & (y <= _BOUNDS[x.dtype].negligible * (1 - x))
    root = lax.sqrt((1 - lax.min(x, number(1))) * (1 + x))
    other = jnp.where(is_flat, y / jnp.where(is_flat, root, number(1)), other)
    return lax.atan2(side, leg), lax.atan2(leg, side), other


def _with_sign(size, negative):
    return jnp.where(negative, -size, size)
