"""Elementwise primitives of one operand."""

import functools

import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import (
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    Maker,
    is_complex,
    name,
    random,
    specials,
)
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close, exact
from harnesses.harness import DERIVATIVES, FINITE_DERIVATIVES, Harness, harnesses
from lowering.ops.dtypes import LOW_PRECISION, SIGNED


def tiny(dtype) -> float:
    """Returns the smallest normal number of a dtype.

    As an absolute tolerance it accepts subnormal results and zero alike: compilers and kernels
    differ in whether they flush subnormal results to zero.
    """
    return float(ml_dtypes.finfo(np.zeros(0, dtype).real.dtype).tiny)


def normals(dtype) -> np.ndarray:
    """Returns the special values of an inexact dtype, except those with arbitrary results in JAX.

    JAX treats subnormal operands as zero, except where it computes a function from the bits. There
    its results are arbitrary, such as cbrt(1e-45) = -5.6e-16. Its complex functions also treat the
    smallest normal numbers as zero: log1p(-1 + 1e-38j) = -inf.
    """
    x = specials(dtype)
    limit = tiny(dtype) * (2 if is_complex(dtype) else 1)
    parts = np.abs(np.stack([x.real, x.imag]).astype(np.float64))
    return x[~np.any((parts > 0) & (parts < limit), axis=0)]


def normal_and_random(dtype, low=-4, high=4, count=64) -> Maker:
    """Returns a maker of the values of `normals` and of random values in [low, high)."""

    def make(rng):
        return np.concatenate([normals(dtype), random((count,), dtype, low, high)(rng)])

    return make


# Primitives of real and complex numbers, with the range of the random operands.
TRANSCENDENTAL = {
    "exp": (lax.exp, -80, 80),
    "exp2": (lax.exp2, -120, 120),
    "expm1": (lax.expm1, -4, 4),
    "log": (lax.log, 0, 100),
    "log1p": (lax.log1p, -1, 4),
    "sin": (lax.sin, -30, 30),
    "cos": (lax.cos, -30, 30),
    "tan": (lax.tan, -30, 30),
    "asin": (lax.asin, -1.1, 1.1),
    "acos": (lax.acos, -1.1, 1.1),
    "atan": (lax.atan, -4, 4),
    "sinh": (lax.sinh, -80, 80),
    "cosh": (lax.cosh, -80, 80),
    "tanh": (lax.tanh, -10, 10),
    "asinh": (lax.asinh, -100, 100),
    "acosh": (lax.acosh, 0.9, 100),
    "atanh": (lax.atanh, -1.1, 1.1),
    "sqrt": (lax.sqrt, 0, 1000),
    "rsqrt": (lax.rsqrt, 0, 1000),
    "logistic": (lax.logistic, -80, 80),
    "cbrt": (lax.cbrt, -1000, 1000),
}
if hasattr(lax, "log2"):
    TRANSCENDENTAL["log2"] = (lax.log2, 0, 100)


def comparer_of(primitive, dtype):
    """Returns the comparer of a transcendental primitive."""
    ulps = 8
    if primitive in ("sinh", "cosh"):
        # JAX adds log(1/2) to the exponent, and a large exponent loses digits by that.
        ulps = 16
    if primitive in ("log1p", "atanh") and np.dtype(dtype) == np.float64:
        # Between sqrt(1/2) - 1 and sqrt(2) - 1 the error of JAX's log1p is that large.
        ulps = 128
    return close(ulps=ulps, atol=2 * tiny(dtype))


def promoted_of(primitive, dtype):
    """The comparer of a primitive whose floats of 16 bits are float32; None for that of all."""
    return _close_in_exponents if primitive == "exp2" and dtype in LOW_PRECISION else None


def _close_in_exponents(expected, actual, args):
    """Whether powers of two are near in their exponents.

    JAX multiplies the exponent by log(2) and rounds the product to 16 bits, which is why 2^120 is
    off by a sixth; with the precision of float32 it is not.
    """

    def exponents(x):
        info = ml_dtypes.finfo(x.dtype)
        powers = np.clip(x.astype(np.float64), 2.0**info.minexp, 2.0**info.maxexp)
        return np.log2(powers).astype(x.dtype)

    # Next to one, what the power is rounded by changes its exponent by as much.
    atol = 2 * float(ml_dtypes.finfo(expected[0].dtype).eps)
    comparer = close(ulps=1, atol=atol)
    return comparer(list(map(exponents, expected)), list(map(exponents, actual)), args)


@harnesses
@symbolic(every_axis)
def transcendental():
    for primitive, (fun, low, high) in TRANSCENDENTAL.items():
        for dtype in FLOAT if primitive == "cbrt" else INEXACT:
            values = normal_and_random(dtype, low, high)
            yield Harness(
                primitive,
                name(dtype),
                fun,
                (values,),
                comparer_of(primitive, dtype),
                derivatives=FINITE_DERIVATIVES if is_complex(dtype) else DERIVATIVES,
                promoted=promoted_of(primitive, dtype),
            )
        for shape in [(), (0, 3), (2, 1, 3)]:
            values = random(shape, np.float32, max(low, 0.1), min(high, 1))
            yield Harness(primitive, f"shape={shape}", fun, (values,), close())


def _rounding_values(dtype):
    """Returns a maker of special values, halves, and values near those whose ulp is 1."""

    def make(rng):
        halves = np.arange(-4, 4.5, 0.5)
        largest = 2.0 ** ml_dtypes.finfo(dtype).nmant
        edges = np.array([largest, largest - 0.5, largest / 2 + 0.5, largest * 2 + 1, 0.49999997])
        values = np.concatenate([halves, edges, -edges]).astype(dtype)
        below = np.nextafter(np.array([0.5, 1, 1.5, 2], dtype), np.array(0, dtype))
        return np.concatenate([specials(dtype), values, below, random((16,), dtype)(rng)])

    return make


@harnesses
@symbolic(every_axis)
def rounding():
    methods = lax.RoundingMethod
    for dtype in FLOAT:
        values = _rounding_values(dtype)
        yield Harness("floor", name(dtype), lax.floor, (values,))
        yield Harness("ceil", name(dtype), lax.ceil, (values,))
        yield Harness("is_finite", name(dtype), lax.is_finite, (values,))
        for method in (methods.TO_NEAREST_EVEN, methods.AWAY_FROM_ZERO):
            fun = functools.partial(lax.round, rounding_method=method)
            yield Harness("round", f"{method.name}_{name(dtype)}", fun, (values,))


@harnesses
@symbolic(every_axis)
def signs():
    for dtype in NUMBER:
        comparer = close(ulps=2, atol=tiny(dtype)) if is_complex(dtype) else exact
        yield Harness("neg", name(dtype), lax.neg, (specials(dtype),))
        yield Harness("sign", name(dtype), lax.sign, (specials(dtype),), comparer)
        if dtype in SIGNED + INEXACT:
            x = specials(dtype)
            # Versions of JAX differ in the absolute value of an infinity with a NaN part.
            values = (
                x[~(np.isnan(x) & (np.isinf(x.real) | np.isinf(x.imag)))]
                if is_complex(dtype)
                else x
            )
            yield Harness("abs", name(dtype), lax.abs, (values,), comparer)
    for primitive, fun in {"neg": lax.neg, "sign": lax.sign, "abs": lax.abs}.items():
        for shape in [(), (0, 3), (2, 1, 3)]:
            yield Harness(primitive, f"shape={shape}", fun, (random(shape, np.float32),))


@harnesses
@symbolic(every_axis)
def parts():
    for dtype in COMPLEX:
        for primitive in ("real", "imag", "conj"):
            yield Harness(primitive, name(dtype), getattr(lax, primitive), (specials(dtype),))
    for dtype in (np.float32, np.float64):
        yield Harness("conj", name(dtype), lax.conj, (specials(dtype),))
    for primitive in ("real", "imag", "conj"):
        values = random((0, 3), np.complex64)
        yield Harness(primitive, "empty", getattr(lax, primitive), (values,))


@harnesses
@symbolic(every_axis)
def powers():
    for dtype in NUMBER:
        values = small(dtype) if is_complex(dtype) else specials(dtype)
        yield Harness("square", name(dtype), lax.square, (values,), product(dtype))
        exponents = (0, 1, 2, 3, 4, 7, 13, *([] if dtype in INTEGER else [-1, -2, -5]))
        fun = functools.partial(integer_powers, exponents=exponents)
        # Compilers may choose the order of the products.
        comparer = exact if dtype in INTEGER else close(atol=tiny(dtype), ulps=16)
        yield Harness("integer_pow", name(dtype), fun, (values,), comparer)


def integer_powers(x, *, exponents):
    return [lax.integer_pow(x, y) for y in exponents]


def small(dtype) -> np.ndarray:
    """Returns special values of a complex dtype whose products and quotients do not overflow."""
    x = specials(dtype)
    parts = np.abs(np.stack([x.real, x.imag]).astype(np.float64))
    with np.errstate(invalid="ignore"):
        return x[np.all((parts == 0) | (parts > 1e-20) & (parts < 1e9), axis=0)]


def product(dtype):
    """Returns the comparer of products: exact, but within 2 ulps for complex numbers.

    The order of operations in a complex product is not specified.
    """
    return close(ulps=2, atol=tiny(dtype)) if is_complex(dtype) else exact


@harnesses
@symbolic(every_axis)
def polynomials():
    if not hasattr(lax, "polynomial"):
        return
    for dtype in NUMBER:
        values = small(dtype) if is_complex(dtype) else random((3, 4), dtype)
        comparer = exact if dtype in INTEGER else close(atol=1e-2 if dtype == 1 else tiny(dtype))
        yield Harness("one_minus_square", name(dtype), lax.one_minus_square, (values,), comparer)
        for count in (1, 3, 12):
            fun = lambda x, *c: lax.polynomial(x, c)  # noqa: E731
            coefficients = tuple(random((), dtype) for _ in range(count))
            x = random((3, 4), dtype, -1, 1)
            # The terms are less than 10, and may cancel.
            eps = 0 if dtype in INTEGER else float(ml_dtypes.finfo(dtype).eps)
            yield Harness(
                "polynomial",
                f"{name(dtype)}_{count}",
                fun,
                (x, *coefficients),
                close(atol=80 * eps),
            )
