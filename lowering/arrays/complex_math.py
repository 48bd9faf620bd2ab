"""Functions of complex numbers, written in JAX as functions of the real and imaginary parts.

TensorFlow's own complex kernels overflow early, or heed the sign of a zero part on a branch cut
where JAX does not. The functions here give JAX's infinities and signs of zero.
"""

import jax.numpy as jnp
from jax import lax


def parts(z):
    """The real and the imaginary part, which is zero of a real number."""
    return (lax.real(z), lax.imag(z)) if jnp.iscomplexobj(z) else (z, jnp.zeros_like(z))


def multiply(z, w):
    """The product."""
    a, b, c, d = lax.real(z), lax.imag(z), lax.real(w), lax.imag(w)
    return lax.complex(a * c - b * d, a * d + b * c)


def bilinear(product, z, w, dtype=None):
    """A bilinear function of z and w, given that of real numbers, in a dtype."""
    a, b, c, d = lax.real(z), lax.imag(z), lax.real(w), lax.imag(w)
    result = lax.complex(product(a, c) - product(b, d), product(a, d) + product(b, c))
    if dtype is None or jnp.issubdtype(dtype, jnp.complexfloating):
        return result
    return lax.real(result).astype(dtype)


def divide(z, w):
    """The quotient; the parts of the divisor are scaled, so that no square overflows.

    Infinite dividends and divisors of zero count by their direction, as in ISO C, G.5.1.
    """
    a, b, c, d = lax.real(z), lax.imag(z), lax.real(w), lax.imag(w)
    one, zero, infinity = (jnp.array(number, a.dtype) for number in (1, 0, jnp.inf))
    dividend, scale = lax.max(lax.abs(a), lax.abs(b)), lax.max(lax.abs(c), lax.abs(d))
    by_zero, is_finite = scale == 0, scale < jnp.inf
    of_infinity = (dividend == jnp.inf) & is_finite & ~by_zero
    a, b = (
        jnp.where(of_infinity, jnp.where(lax.abs(part) == jnp.inf, lax.sign(part), zero), part)
        for part in (a, b)
    )
    scale = jnp.where(is_finite & ~by_zero, scale, one)
    c, d = c / scale, d / scale
    size = jnp.where(by_zero, one, (c * c + d * d) * scale)
    factor = jnp.where(of_infinity | by_zero, infinity, one)
    real, imag = (
        jnp.where(by_zero, part, of_both) * factor / size
        for part, of_both in ((a, a * c + b * d), (b, b * c - a * d))
    )
    quotient = lax.complex(real, imag)
    vanishes = _is_infinite(w) & (dividend < jnp.inf)
    return jnp.where(vanishes, jnp.zeros((), quotient.dtype), quotient)


def _is_infinite(z):
    return lax.max(lax.abs(lax.real(z)), lax.abs(lax.imag(z))) == jnp.inf


def size(z):
    """|z|; its square may overflow."""
    return size_of_parts(lax.real(z), lax.imag(z))


def size_of_parts(a, b):
    """|a + bi| of real numbers."""
    large, small = _sorted_sizes(a, b)
    is_special = (large == 0) | (large == jnp.inf)
    ratio = small / jnp.where(is_special, jnp.ones((), large.dtype), large)
    return jnp.where(is_special, large, large * lax.sqrt(1 + ratio * ratio))


def exp(z):
    """exp(z); it overflows only where a part does, and is real if z is real."""
    a, b = lax.real(z), lax.imag(z)
    size, root, zero = lax.exp(a), lax.exp(a * 0.5), jnp.zeros((), a.dtype)

    def scaled(part):
        return jnp.where(size == jnp.inf, root * part * root, size * part)

    return lax.complex(scaled(lax.cos(b)), jnp.where(b == 0, zero, scaled(lax.sin(b))))


def expm1(z):
    """exp(z) - 1; the real part does not cancel near zero."""
    a, b = lax.real(z), lax.imag(z)
    half_sine = lax.sin(b * 0.5)
    real = lax.expm1(a) * lax.cos(b) - 2 * half_sine * half_sine
    return lax.complex(real, jnp.where(b == 0, b, lax.exp(a) * lax.sin(b)))


def log(z):
    """log(z), accurate also near the unit circle, where log(|z|) would cancel."""
    a, b = lax.real(z), lax.imag(z)
    large, small = _sorted_sizes(a, b)
    near_one = 0.5 * lax.log1p((large - 1) * (large + 1) + small * small)
    is_near_one = (large > 0.5) & (large < 2)
    real = jnp.where(is_near_one, near_one, log_size(large, small))
    return lax.complex(_nan_if_nan(real, a, b), lax.atan2(b, a))


def log1p(z):
    """log(1 + z), accurate near zero."""
    a, b = lax.real(z), lax.imag(z)
    near_zero = 0.5 * lax.log1p(a * (a + 2) + b * b)
    is_near_zero = (lax.abs(b) < 1) & (lax.abs(a + 0.25) < 0.5)
    real = jnp.where(is_near_zero, near_zero, log_size(*_sorted_sizes(a + 1, b)))
    return lax.complex(_nan_if_nan(real, a, b), lax.atan2(b, a + 1))


def sqrt(z):
    """The principal square root.

    On the negative real axis its imaginary part is positive, whatever the sign of the zero in z.
    """
    a, b = lax.real(z), lax.imag(z)
    size_a, size_b = lax.abs(a), lax.abs(b)
    # z is scaled down where its absolute value would overflow.
    limit, one = jnp.finfo(a.dtype).max / 4, jnp.ones((), a.dtype)
    is_huge = (size_a > limit) | (size_b > limit)
    scale, unscale = jnp.where(is_huge, one / 16, one), jnp.where(is_huge, 4 * one, one)
    p, q = size_a * scale, size_b * scale
    root = lax.sqrt(0.5 * (lax.abs(lax.complex(p, q)) + p))
    large, other = root * unscale, 0.5 * q / root * unscale
    small = jnp.where((root == 0) | (size_b == jnp.inf), size_b, other)
    is_right = a >= 0
    real, imag = jnp.where(is_right, large, small), jnp.where(is_right, small, large)
    return lax.complex(real, jnp.where(b < 0, -imag, imag))


def square(z):
    """The square; its real part overflows only where one of its factors does."""
    a, b = lax.real(z), lax.imag(z)
    product = a * b
    return lax.complex((a - b) * (a + b), product + product)


def rsqrt(z):
    """1 / sqrt(z), computed in polar form."""
    a, b = lax.real(z), lax.imag(z)
    large, small = _sorted_sizes(a, b)
    ratio = small / large
    size = lax.rsqrt(large) * lax.rsqrt(lax.sqrt(1 + ratio * ratio))
    # The ratio is NaN if z is zero or both parts are infinite.
    size = jnp.where(size != size, jnp.where(large != large, large, lax.rsqrt(small)), size)
    angle = -0.5 * lax.atan2(b, a)
    root = lax.complex(size * lax.cos(angle), size * lax.sin(angle))
    pole = lax.complex(jnp.full(a.shape, jnp.inf, a.dtype), jnp.full(a.shape, jnp.nan, a.dtype))
    is_infinite = (lax.abs(a) == jnp.inf) | (lax.abs(b) == jnp.inf)
    return jnp.where(z == 0, pole, jnp.where(is_infinite, jnp.zeros((), z.dtype), root))


def pow(z, w):
    """z to the power of w, computed in polar form; z to the power of 0 is 1 for every z."""
    a, b, c, d = lax.real(z), lax.imag(z), lax.real(w), lax.imag(w)
    size, angle = lax.abs(z), lax.atan2(b, a)
    power = lax.pow(size, c) * lax.exp(-d * angle)
    turn = c * angle + d * lax.log(size)
    general = lax.complex(power * lax.cos(turn), power * lax.sin(turn))
    zero, one, infinity = (jnp.asarray(x, z.dtype) for x in (0, 1, jnp.inf))
    of_infinity = (a == jnp.inf) & (b == 0) & (d == 0)
    result = jnp.where(of_infinity & (c > 0), infinity, general)
    is_zero = of_infinity & (c < 0) | (z == 0) & (c > 0) & (d == 0)
    return jnp.where((w == 0) | (z == 1), one, jnp.where(is_zero, zero, result))


def atan2(y, x):
    """The angle of the vector (x, y), extended analytically to complex x and y.

    It is -i log((x + iy) / sqrt(x^2 + y^2)), with a square root that heeds the sign of a zero.
    """
    square = x * x + y * y
    size = lax.sqrt(lax.abs(square))
    half_angle = 0.5 * lax.atan2(lax.imag(square), lax.real(square))
    root = lax.complex(size * lax.cos(half_angle), size * lax.sin(half_angle))
    vector = lax.complex(lax.real(x) - lax.imag(y), lax.imag(x) + lax.real(y))
    direction = vector / root
    angle = lax.atan2(lax.imag(direction), lax.real(direction))
    return lax.complex(angle, -lax.log(lax.abs(direction)))


def sin(z):
    """sin(z). On the imaginary axis the real part is zero, also where cosh is infinite."""
    a, b = lax.real(z), lax.imag(z)
    cosh, sinh = _hyperbolic(b)
    real = jnp.where(a == 0, jnp.zeros((), a.dtype), lax.sin(a) * cosh)
    return lax.complex(real, lax.cos(a) * sinh)


def cos(z):
    """cos(z). On the imaginary axis the imaginary part is zero, as in `sin`."""
    a, b = lax.real(z), lax.imag(z)
    cosh, sinh = _hyperbolic(b)
    imag = jnp.where(a == 0, jnp.zeros((), a.dtype), -lax.sin(a) * sinh)
    return lax.complex(lax.cos(a) * cosh, imag)


def sinh(z):
    """sinh(z). It overflows only where a part does, and is real if z is real."""
    a, b = lax.real(z), lax.imag(z)
    cosh, sinh = _hyperbolic(a)
    imag = jnp.where(b == 0, jnp.zeros((), a.dtype), _scaled(cosh, a, lax.sin(b)))
    return lax.complex(_scaled(sinh, a, lax.cos(b)), imag)


def cosh(z):
    """cosh(z). It overflows only where a part does, and is real if z is real."""
    a, b = lax.real(z), lax.imag(z)
    cosh, sinh = _hyperbolic(a)
    imag = jnp.where(b == 0, jnp.zeros((), a.dtype), _scaled(sinh, a, lax.sin(b)))
    return lax.complex(_scaled(cosh, a, lax.cos(b)), imag)


def tan(z):
    """tan(z) = -i tanh(i z)."""
    turned = tanh(lax.complex(-lax.imag(z), lax.real(z)))
    return lax.complex(lax.imag(turned), -lax.real(turned))


def tanh(z):
    """tanh(z); its real part is 1 or -1 where the sines are too large for their squares."""
    a, b = lax.real(z), lax.imag(z)
    # Beyond, 1 - exp(-2 |a|) is one in float64, too.
    is_large = lax.abs(a) > 20
    cosh_a, sinh_a = _hyperbolic(jnp.where(is_large, jnp.zeros((), a.dtype), a))
    sine, cosine = lax.sin(b), lax.cos(b)
    size = sinh_a * sinh_a + cosine * cosine
    rest = lax.exp(-2 * lax.abs(a))
    rest = jnp.where(rest == 0, rest, 4 * sine * cosine * rest)
    real = jnp.where(is_large, lax.sign(a), sinh_a * cosh_a / size)
    return lax.complex(real, jnp.where(is_large, rest, sine * cosine / size))


def logistic(z):
    """1 / (1 + exp(-z)), which is zero where the exponential overflows."""
    divisor = 1 + lax.exp(-z)
    is_infinite = (lax.abs(lax.real(divisor)) == jnp.inf) | (lax.abs(lax.imag(divisor)) == jnp.inf)
    return jnp.where(is_infinite, jnp.zeros((), z.dtype), 1 / divisor)


def without_negative_zero(z, part):
    """`z` with a negative zero in `part`, "real" or "imag", replaced by a positive one."""
    a, b = lax.real(z), lax.imag(z)
    zero = jnp.zeros((), a.dtype)
    if part == "real":
        return lax.complex(jnp.where(a == 0, zero, a), b)
    return lax.complex(a, jnp.where(b == 0, zero, b))


def atan_argument(z):
    """The argument for which TensorFlow's Atan gives JAX's atan(z) on the branch cut.

    On the cut, the imaginary axis, the sign of a zero or NaN real part decides that of the result.
    """
    a, b = lax.real(z), lax.imag(z)
    return lax.complex(_across_cut(a, b), b)


def atanh_argument(z):
    """The same as `atan_argument` for Atanh, whose branch cut is on the real axis."""
    a, b = lax.real(z), lax.imag(z)
    return lax.complex(a, _across_cut(b, a))


def _across_cut(across, along):
    """The part of a number across a branch cut, with the sign that JAX takes it to have.

    If the part along the cut is large, JAX takes a zero as positive; if it is infinite, JAX takes
    NaN as negative.
    """
    large = 2.0 ** (2 * jnp.finfo(along.dtype).nmant + 3)
    is_zero = (across == 0) & (lax.abs(along) >= large)
    across = jnp.where(is_zero, jnp.zeros((), across.dtype), across)
    is_nan = (across != across) & (lax.abs(along) == jnp.inf)
    return jnp.where(is_nan, -jnp.ones((), across.dtype), across)


def _sorted_sizes(a, b):
    """The larger and the smaller of |a| and |b|."""
    a, b = lax.abs(a), lax.abs(b)
    return jnp.where(a > b, a, b), jnp.where(a > b, b, a)


def log_size(large, small):
    """log(sqrt(large^2 + small^2)), which does not overflow."""
    ratio = jnp.where(large == small, jnp.ones((), large.dtype), small / large)
    return lax.log(large) + 0.5 * lax.log1p(ratio * ratio)


def _scaled(size, x, factor):
    """The product of cosh(x) or sinh(x) and a factor; the first may overflow."""
    half = lax.abs(x) * 0.5
    # A product of three, which an optimizer may compute in another order, would overflow, too.
    product = lax.sign(size) * (0.5 * factor) * lax.exp(half) / lax.exp(-half)
    return jnp.where(lax.abs(size) == jnp.inf, product, size * factor)


def _hyperbolic(x):
    """cosh(x) and sinh(x); the sine does not cancel near zero."""
    up, down = lax.expm1(x), lax.expm1(-x)
    return (up + down) * 0.5 + 1, (up - down) * 0.5


def _nan_if_nan(x, *parts):
    """x, with NaN wherever one of `parts` is NaN."""
    for part in parts:
        x = jnp.where(part != part, part, x)
    return x


def maximum(x, y):
    """The greater one by the real parts, and by the imaginary ones of equal ones."""
    return jnp.where(_is_less(y, x), x, y)


def minimum(x, y):
    """The lesser one; see `maximum`."""
    return jnp.where(_is_less(x, y), x, y)


def _is_less(x, y):
    real_x, real_y = lax.real(x), lax.real(y)
    return (real_x < real_y) | (real_x == real_y) & (lax.imag(x) < lax.imag(y))
