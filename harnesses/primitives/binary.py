"""Arithmetic primitives of two operands."""

import jax
import numpy as np
from jax import lax

from harnesses.arguments import (
    ALL,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    full_range,
    is_complex,
    is_float,
    name,
    pairs,
    random,
    specials,
)
from harnesses.axes import axes, every_axis, symbolic
from harnesses.compare import close, exact
from harnesses.harness import Harness, harnesses
from harnesses.primitives.unary import normals, product, small, tiny

_BROADCASTS = [((3, 1), (1, 4)), ((2, 3), ()), ((), (2, 3)), ((0, 3), (1, 3)), ((), ())]


def broadcast_binary(primitive, fun, dtype, comparer=exact):
    """Yields harnesses with dimensions of size one, with scalars, and with empty operands."""
    for shapes in _BROADCASTS:
        args = tuple(random(shape, dtype, 1, 4) for shape in shapes)
        yield Harness(primitive, f"shapes={shapes[0]},{shapes[1]}", fun, args, comparer)


def with_known(fun, known, first=False):
    """Returns `fun` with each of the constants `known` as the second operand.

    If `first`, each constant is also used as the first operand.
    """

    def apply(x):
        return [fun(x, y) for y in known] + [fun(y, x) for y in known if first]

    return apply


def some_pairs(dtype):
    """Returns all pairs of special values. Of complex pairs it returns only every 37th."""
    x, y = pairs(dtype)
    step = 37 if is_complex(dtype) else 1
    return x[::step], y[::step]


def small_pairs(dtype):
    """Returns pairs of complex values whose products and quotients do not overflow."""
    x, y = np.meshgrid(small(dtype), small(dtype))
    return x.ravel()[::7], y.ravel()[::7]


def _add_any(x, y):
    """Binds `add_any`: the sum of two cotangents of the same value."""
    _, vjp = jax.vjp(lambda z: (z, z), x)
    return vjp((x, y))


def _large_pairs(dtype, *parts):
    """Returns all pairs of complex values whose real and imaginary parts are in `parts`."""
    values = np.array([complex(a, b) for a in parts for b in parts], dtype)
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


def _fused_or_not(expected, actual, args):
    """Compares a complex product with JAX's, or with the formula where each step is rounded.

    On processors with fused multiply-add, JAX multiplies and adds in one operation, in which a
    product does not overflow. Without it (`--xla_cpu_max_isa=AVX`) JAX gives the other results.
    The last elements, which do not fill a vector, TensorFlow's kernel multiplies by C's rules: a
    product of infinities is infinite there, and not NaN.
    """
    (fused,), (product,), (x, y) = expected, actual, args
    rounded = np.empty_like(fused)
    with np.errstate(all="ignore"):
        rounded.real = x.real * y.real - x.imag * y.imag
        rounded.imag = x.real * y.imag + x.imag * y.real
    same = _same(product.real, rounded.real) & _same(product.imag, rounded.imag)
    same |= np.isnan(rounded) & np.isinf(product)
    return close()([np.where(same, product, fused)], actual, args)


def _same(x, y):
    """Returns where x and y are equal or both NaN."""
    return (x == y) | np.isnan(x) & np.isnan(y)


@harnesses
@symbolic(every_axis)
def arithmetic():
    for primitive, fun in {"add": lax.add, "sub": lax.sub, "mul": lax.mul}.items():
        for dtype in NUMBER:
            is_small = primitive == "mul" and is_complex(dtype)
            args = small_pairs(dtype) if is_small else some_pairs(dtype)
            yield Harness(primitive, name(dtype), fun, args, product(dtype))
        yield from broadcast_binary(primitive, fun, np.float32)
        double = with_known(fun, [np.float32(2)])
        yield Harness(primitive, "literal", double, (random((3,), np.float32),))
    for dtype in INEXACT:
        yield Harness("add_any", name(dtype), _add_any, some_pairs(dtype))
    for dtype in COMPLEX:
        args = _large_pairs(dtype, 0.0, float(np.finfo(dtype).max), np.inf)
        yield Harness("mul", f"overflow_{name(dtype)}", lax.mul, args, _fused_or_not)
        # There are no large divisors: JAX's own quotients overflow with them.
        args = _large_pairs(dtype, 0.0, -0.0, 1.0, -2.5, np.inf, np.nan)
        yield Harness("div", f"overflow_{name(dtype)}", lax.div, args, close())


def extremum(dtype):
    """Returns the comparer of max, min and clamp.

    Implementations may flush a subnormal result to zero. Signs of zeros have harnesses of their
    own.
    """
    return close(ulps=0, atol=tiny(dtype)) if is_float(dtype) else exact


@harnesses
@symbolic(every_axis)
def minmax():
    zeros = np.array([0.0, -0.0, 0.0, -0.0]), np.array([0.0, 0.0, -0.0, -0.0])
    for primitive, fun in {"max": lax.max, "min": lax.min}.items():
        for dtype in ALL:
            yield Harness(primitive, name(dtype), fun, some_pairs(dtype), extremum(dtype))
        for dtype in FLOAT:
            args = tuple(zero.astype(dtype) for zero in zeros)
            yield Harness(primitive, f"zeros_{name(dtype)}", fun, args)
            # Long enough for vectorized kernels.
            yield Harness(
                primitive, f"many_zeros_{name(dtype)}", fun, tuple(np.tile(z, 9) for z in args)
            )
            known = [np.array(0.0, dtype), np.array(-0.0, dtype), np.tile(args[1], 9)]
            both = with_known(fun, known, first=True)
            args = (np.tile(args[0], 9),)
            yield Harness(primitive, f"known_zeros_{name(dtype)}", both, args, symbolic=axes())
            known = [np.array(y, dtype) for y in (0.0, np.nan, 2.5)]
            args = (specials(dtype),)
            both = with_known(fun, known, first=True)
            yield Harness(primitive, f"known_{name(dtype)}", both, args, extremum(dtype))
        yield from broadcast_binary(primitive, fun, np.float32)


def _divisors(dtype):
    return [
        0,
        3,
        np.iinfo(dtype).max,
        *([-1, -4, np.iinfo(dtype).min] if np.iinfo(dtype).min else []),
    ]


@harnesses
@symbolic(every_axis)
def div_and_rem():
    funs = {"div": lax.div, "rem": lax.rem}
    for dtype in NUMBER:
        if is_complex(dtype):
            x, y = small_pairs(dtype)
            args = x[y != 0], y[y != 0]
            # Implementations compute a quotient from the parts of the divisor in different orders.
            yield Harness("div", name(dtype), lax.div, args, close(ulps=4, atol=tiny(dtype)))
        else:
            yield Harness("div", name(dtype), lax.div, pairs(dtype))
            yield Harness("rem", name(dtype), lax.rem, pairs(dtype))
    for dtype in INTEGER:
        for primitive, fun in funs.items():
            args = full_range((64,), dtype), full_range((64,), dtype)
            yield Harness(primitive, f"random_{name(dtype)}", fun, args)
            by_known = with_known(fun, [np.array(y, dtype) for y in _divisors(dtype)])
            yield Harness(primitive, f"known_{name(dtype)}", by_known, (specials(dtype),))
    for primitive, fun in funs.items():
        yield from broadcast_binary(primitive, fun, np.int32)
        yield from (
            Harness(primitive, f"float_{h.case}", h.fun, h.args, close(ulps=1))
            # XLA may replace the division by a broadcast divisor by a product with its reciprocal.
            for h in broadcast_binary(primitive, fun, np.float32)
        )


@harnesses
@symbolic(every_axis)
def mulhi():
    if not hasattr(lax, "mulhi"):
        return
    for dtype in INTEGER:
        x, y = pairs(dtype)
        yield Harness("mulhi", name(dtype), lax.mulhi, (x, y))
        args = full_range((64,), dtype), full_range((64,), dtype)
        yield Harness("mulhi", f"random_{name(dtype)}", lax.mulhi, args)


@harnesses
@symbolic(every_axis)
def atan2():
    for dtype in FLOAT:
        x, y = np.meshgrid(normals(dtype), normals(dtype))
        args = x.ravel(), y.ravel()
        yield Harness("atan2", name(dtype), lax.atan2, args, close(atol=tiny(dtype)))
    for dtype in COMPLEX:
        # JAX computes the logarithm of a number near the unit circle, where the real part cancels.
        args = random((64,), dtype), random((64,), dtype)
        comparer = close(atol=16 * float(np.finfo(dtype).eps))
        yield Harness("atan2", name(dtype), lax.atan2, args, comparer)
    yield from broadcast_binary("atan2", lax.atan2, np.float32, close())


@harnesses
@symbolic(every_axis)
def nextafter():
    for dtype in FLOAT:
        yield Harness("nextafter", name(dtype), lax.nextafter, pairs(dtype))
    yield from broadcast_binary("nextafter", lax.nextafter, np.float32)


@harnesses
@symbolic(every_axis)
def complex_():
    for dtype in (np.float32, np.float64):
        yield Harness("complex", name(dtype), lax.complex, pairs(dtype))
    yield from broadcast_binary("complex", lax.complex, np.float32)


@harnesses
@symbolic(every_axis)
def pow_():
    for dtype in INEXACT:
        values = powers = normals(dtype)
        if is_complex(dtype):
            powers = small(dtype)[np.abs(small(dtype)) < 8]
            values = np.append(powers[::3], [dtype(np.inf), dtype(np.nan)])
            powers = powers[::5]
        # The exponent multiplies the errors of the angle and the logarithm.
        comparer = close(ulps=32 if is_complex(dtype) else 8, atol=tiny(dtype))
        x, y = np.meshgrid(values, powers)
        yield Harness("pow", name(dtype), lax.pow, (x.ravel(), y.ravel()), comparer)
        x, y = random((64,), dtype, 0.1, 4), random((64,), dtype)
        yield Harness("pow", f"random_{name(dtype)}", lax.pow, (x, y), comparer)
        for exponent in (np.int8, np.int32, np.uint64):
            powers = specials(exponent)
            if is_complex(dtype):
                powers = powers[np.abs(powers.astype(float)) < 20]
            x, y = np.meshgrid(values, powers)
            args = x.ravel(), y.ravel()
            yield Harness("pow", f"{name(dtype)}_{name(exponent)}", lax.pow, args, comparer)
    yield from broadcast_binary("pow", lax.pow, np.float32, close())
