"""Substitutes of elementwise functions of floating-point numbers."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.ops import kernels
from lowering.ops.constants import constant
from lowering.ops.emission import cast, emit, substitute
from lowering.ops.substitutes.movement import shape_of


@substitute("ClipByValue")
def _clip_by_value(x, low, high):
    return emit("Minimum", emit("Maximum", x, low), high)


# Half a turn in three parts, of which few bits are set, so that their products with the number of
# half turns in an angle up to this limit are exact: W. J. Cody and W. M. Waite, "Software Manual
# for the Elementary Functions", 1980.
_HALF_TURN = (3.140625, 9.67502593994140625e-4, 1.50995799097837643e-7)
_LARGE_ANGLE = 10_000.0
# Up to a quarter of a turn six terms of the series are a sine, up to rounding.
_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(5, -1, -1))


@substitute("Sin")
def _sin(x):
    """By a series; see `tfjs.quirks.digits_of_sines`."""
    return _unless_large("Sin", x, _sine(x))


@substitute("Cos")
def _cos(x):
    return _unless_large("Cos", x, _cosine(x))


def _sine(x):
    turns = emit("Round", emit("Mul", x, constant(1 / np.pi, x.dtype)))
    return _sine_of_rest(x, turns, turns)


def _cosine(x):
    half = constant(0.5, x.dtype)
    turns = emit("Round", emit("Sub", emit("Mul", x, constant(1 / np.pi, x.dtype)), half))
    return emit("Neg", _sine_of_rest(x, emit("AddV2", turns, half), turns))


def _sine_of_rest(x, half_turns, turns):
    """The sine of what is left of `x`, with the other sign if `turns` is odd."""
    for part in _HALF_TURN:
        x = emit("Sub", x, emit("Mul", half_turns, constant(part, x.dtype)))
    sine = emit("Mul", x, _horner(_SIN, emit("Mul", x, x)))
    pairs = emit("Mul", turns, constant(0.5, x.dtype))
    # One half if `turns` is odd.
    odd = emit("Sub", pairs, emit("Floor", pairs))
    sign = emit("Sub", constant(1, x.dtype), emit("Mul", odd, constant(4, x.dtype)))
    return emit("Mul", sign, sine)


def _unless_large(op, x, result):
    """The op itself for angles whose digits the reduction would lose."""
    is_large = emit("Greater", emit("Abs", x), constant(_LARGE_ANGLE, x.dtype))
    return emit("SelectV2", is_large, emit(op, x), result)


@substitute("Rint")
def _rint(x):
    return emit("Round", x)


# Below this eight terms of the series are exp(x) - 1, up to rounding.
_SMALL_EXPONENT = 0.5
_EXPM1 = tuple(1 / math.factorial(n) for n in range(8, 0, -1))


@substitute("Expm1")
def _expm1(x):
    is_small = emit("Less", emit("Abs", x), constant(_SMALL_EXPONENT, x.dtype))
    series = emit("Mul", x, _horner(_EXPM1, x))
    return emit("SelectV2", is_small, series, emit("Sub", exponential(x), constant(1, x.dtype)))


def exponential(x):
    """By a power of a number near e; see `tflite.quirks.digits_of_large_exponentials`."""
    base = np.float32(np.e)
    # Beyond this, results are infinite or zero.
    rest = emit("Mul", _within(x, 128), constant(1 - math.log(base), x.dtype))
    return emit(
        "Mul", emit("Pow", constant(base, x.dtype), x), emit("AddV2", rest, constant(1, x.dtype))
    )


@substitute("Softplus")
def _softplus(x):
    """As log(1 + exp(-|x|)), which neither overflows nor loses digits, above a rectifier."""
    rest = emit("Log1p", emit("Exp", emit("Neg", emit("Abs", x))))
    return emit("AddV2", emit("Relu", x), rest)


@substitute("Log1p")
def _log1p(x):
    """With all digits; see `tfjs.quirks.log1p_of_small_numbers`."""
    return _with_digits_near_one(x, _finite_log(emit("AddV2", constant(1, x.dtype), x)))


def logarithm(x):
    """With all digits; see `tflite.quirks.digits_of_logarithms_near_one`."""
    return _with_digits_near_one(emit("Sub", x, constant(1, x.dtype)), _finite_log(x))


def _finite_log(x):
    """The logarithm; see `tflite.quirks.logarithms_of_the_largest_numbers`."""
    is_large = emit("Greater", x, constant(1e9, x.dtype))
    large = _log_of_double(emit("Mul", x, constant(0.5, x.dtype)))
    return emit("SelectV2", is_large, large, emit("Log", x))


def _with_digits_near_one(x, far):
    """log(1 + x): `far`, and near x = 0, where the sum loses digits, a series in x / (2 + x).

    The coefficients are those of Sun Microsystems, fdlibm, `s_log1p.c`, 1993, for float32.
    """
    two, half = (constant(number, x.dtype) for number in (2, 0.5))
    s = emit("RealDiv", x, emit("AddV2", two, x))
    half_square = emit("Mul", half, emit("Mul", x, x))
    z = emit("Mul", s, s)
    rest = emit("AddV2", half_square, emit("Mul", z, _horner(_LOG1P, z)))
    near = emit("Sub", x, emit("Sub", half_square, emit("Mul", s, rest)))
    middle = emit("Sub", x, constant(0.06, x.dtype))
    is_near = emit("Less", emit("Abs", middle), constant(0.35, x.dtype))
    return emit("SelectV2", is_near, near, far)


# log((1 + s) / (1 - s)) / s - 2, over s^2, the highest power of s^2 first.
_LOG1P = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)


@substitute("IsInf")
def _is_inf(x):
    return emit("Equal", emit("Abs", x), constant(np.inf, x.dtype))


@substitute("IsNan")
def _is_nan(x):
    return emit("NotEqual", x, x)


@substitute("IsFinite")
def _is_finite(x):
    return emit("Less", emit("Abs", x), constant(np.inf, x.dtype))


@substitute("Asinh")
def _asinh(x):
    """log(a + sqrt(a^2 + 1)) of the size a, without the digits that cancel."""
    size, one = emit("Abs", x), constant(1, x.dtype)
    root = emit("Sqrt", emit("AddV2", emit("Mul", size, size), one))
    rest = emit("RealDiv", emit("Mul", size, size), emit("AddV2", one, root))
    small = emit("Log1p", emit("AddV2", size, rest))
    is_large = emit("Greater", size, constant(1e9, x.dtype))
    large = _log_of_double(size)
    return emit("Mul", emit("Sign", x), emit("SelectV2", is_large, large, small))


def _log_of_double(x):
    """log(2 x), of half of x: some kernels give infinity for the largest numbers."""
    half = emit("Mul", x, constant(0.5, x.dtype))
    return emit("AddV2", emit("Log", half), constant(2 * np.log(2), x.dtype))


@substitute("Acosh")
def _acosh(x):
    one = constant(1, x.dtype)
    t = emit("Sub", x, one)
    root = emit("Sqrt", emit("AddV2", emit("Mul", t, t), emit("AddV2", t, t)))
    small = emit("Log1p", emit("AddV2", t, root))
    return emit("SelectV2", emit("Greater", x, constant(1e9, x.dtype)), _log_of_double(x), small)


@substitute("Atanh")
def _atanh(x):
    """Of the size, as the logarithm loses digits near -1."""
    size, half = emit("Abs", x), constant(0.5, x.dtype)
    rest = emit("Sub", constant(1, x.dtype), size)
    quotient = emit("RealDiv", emit("AddV2", size, size), rest)
    return emit("Mul", emit("Sign", x), emit("Mul", half, emit("Log1p", quotient)))


@substitute("Sinh")
def _sinh(x):
    half = constant(0.5, x.dtype)
    e = emit("Expm1", emit("Abs", x))
    one = constant(1, x.dtype)
    size = emit("Mul", half, emit("AddV2", e, emit("RealDiv", e, emit("AddV2", e, one))))
    is_large = emit("Greater", e, constant(1e30, x.dtype))
    large = exponential(emit("Sub", emit("Abs", x), constant(np.log(2), x.dtype)))
    return emit("Mul", emit("Sign", x), emit("SelectV2", is_large, large, size))


@substitute("Cosh")
def _cosh(x):
    half = exponential(emit("Sub", emit("Abs", x), constant(np.log(2), x.dtype)))
    return emit("AddV2", half, emit("RealDiv", constant(0.25, x.dtype), half))


@substitute("Tan")
def _tan(x):
    if kernels.supports("Sin", x.dtype):
        return emit("RealDiv", emit("Sin", x), emit("Cos", x))
    return _unless_large("Tan", x, emit("RealDiv", _sine(x), _cosine(x)))


@substitute("Atan")
def _atan(x):
    # Not all kernels of Atan2 broadcast.
    return emit("Atan2", x, emit("Fill", shape_of(x, tf.int32), constant(1, x.dtype)))


@substitute("Asin")
def _asin(x):
    return emit("Atan2", x, _leg(x))


@substitute("Acos")
def _acos(x):
    return emit("Atan2", _leg(x), x)


def _leg(x):
    """The other leg of a right triangle with hypotenuse 1."""
    one = constant(1, x.dtype)
    return emit("Sqrt", emit("Mul", emit("Sub", one, x), emit("AddV2", one, x)))


@substitute("Atan2")
def _atan2(y, x):
    """The angle in the right half plane, turned by half a turn where x is negative."""
    zero, one = constant(0, x.dtype), constant(1, x.dtype)
    larger = emit("Maximum", emit("Abs", x), emit("Abs", y))
    divisor = emit("SelectV2", emit("Equal", larger, zero), one, larger)
    ratios = []
    for z in (y, x):
        infinite = emit("SelectV2", emit("IsInf", z), emit("Sign", z), zero)
        ratios.append(
            emit("SelectV2", emit("IsInf", larger), infinite, emit("RealDiv", z, divisor))
        )
    steep = emit("Greater", emit("Abs", ratios[0]), emit("Abs", ratios[1]))
    low = emit("SelectV2", emit("Equal", larger, zero), one, ratios[1])
    low = emit("SelectV2", steep, one, low)
    high = emit("SelectV2", steep, ratios[0], one)
    flat = emit("Atan", emit("RealDiv", ratios[0], low))
    quarter = emit("Mul", emit("Sign", y), constant(np.pi / 2, x.dtype))
    up = emit("Sub", quarter, emit("Atan", emit("RealDiv", ratios[1], high)))
    is_left = emit("Less", x, zero)
    is_below = emit("Less", y, zero)
    turn = emit("SelectV2", is_below, constant(-np.pi, x.dtype), constant(np.pi, x.dtype))
    turned = emit("SelectV2", is_left, emit("AddV2", flat, turn), flat)
    return emit("SelectV2", steep, up, turned)


@substitute("Square")
def _square(x):
    return emit("Mul", x, x)


@substitute("Relu")
def _relu(x):
    return emit("Maximum", x, constant(0, x.dtype))


@substitute("Rsqrt")
def _rsqrt(x):
    return emit("RealDiv", constant(1, x.dtype), emit("Sqrt", x))


@substitute("Sign")
def _sign(x):
    zero = constant(0, x.dtype)
    return emit(
        "Sub", cast(emit("Greater", x, zero), x.dtype), cast(emit("Less", x, zero), x.dtype)
    )


@substitute("Greater")
def _greater(x, y):
    return emit("Less", y, x)


@substitute("Erfc")
def _erfc(x):
    """Rational functions of the square, below 1 and above it.

    The coefficients are those of S. L. Moshier, Cephes, `ndtrf.c`, 1989.
    """
    size, square = emit("Abs", x), emit("Mul", x, x)
    small = emit("Sub", constant(1, x.dtype), emit("Mul", x, _horner(_ERF, square)))
    safe = emit("Maximum", size, constant(1, x.dtype))
    q = emit("RealDiv", constant(1, x.dtype), safe)
    z = emit("Exp", emit("Neg", emit("Mul", safe, safe)))
    y = emit("Mul", q, q)
    is_middle = emit("Less", safe, constant(2, x.dtype))
    factor = emit("SelectV2", is_middle, _horner(_ERFC_MIDDLE, y), _horner(_ERFC_TAIL, y))
    tail = emit("Mul", emit("Mul", z, q), factor)
    is_negative = emit("Less", x, constant(0, x.dtype))
    tail = emit("SelectV2", is_negative, emit("Sub", constant(2, x.dtype), tail), tail)
    return emit("SelectV2", emit("Less", size, constant(1, x.dtype)), small, tail)


@substitute("Erf")
def _erf(x):
    """A rational function. At the end of its interval, and beyond, the result rounds to 1."""
    x = _within(x, _ERF_END)
    square = emit("Mul", x, x)
    numerator, denominator = (_horner(p, square) for p in (_ERF_NUMERATOR, _ERF_DENOMINATOR))
    return _within(emit("RealDiv", emit("Mul", x, numerator), denominator), 1)


def _within(x, limit):
    return emit("ClipByValue", x, constant(-limit, x.dtype), constant(limit, x.dtype))


# erf(x) / x on [0, 4] in x^2, by least squares of the relative error, which is below 2.5e-8.
_ERF_END = 4.0
_ERF_NUMERATOR = (
    1.986783329375405e-06,
    0.0002845668323748296,
    0.003883367458699494,
    0.05310181587709083,
    0.19354555627445652,
    1.1283791392993587,
)
_ERF_DENOMINATOR = (
    3.742023486824773e-05,
    0.0011855776637082437,
    0.015207296422586893,
    0.11535020895581548,
    0.5048578386291882,
    1.0,
)

# erf(x) / x on [0, 1], and exp(x^2) x erfc(x) on [1, 2] and above, in x^2 and x^-2.
_ERF = (
    7.853861353153693e-5,
    -8.010193625184903e-4,
    5.188327685732524e-3,
    -2.685381193529856e-2,
    1.128358514861418e-1,
    -3.761262582423300e-1,
    1.128379165726710e0,
)

_ERFC_MIDDLE = (
    2.326819970068386e-2,
    -1.387039388740657e-1,
    3.687424674597105e-1,
    -5.824733027278666e-1,
    6.210004621745983e-1,
    -4.944515323274145e-1,
    3.404879937665872e-1,
    -2.741127028184656e-1,
    5.638259427386472e-1,
)

_ERFC_TAIL = (
    -1.047766399936249e1,
    1.297719955372516e1,
    -7.495518717768503e0,
    2.921019019210786e0,
    -1.015265279202700e0,
    4.218463358204948e-1,
    -2.820767439740514e-1,
    5.641895067754075e-1,
)


def _horner(coefficients: Any, x: tf.Tensor) -> tf.Tensor:
    value = constant(coefficients[0], x.dtype)
    for coefficient in coefficients[1:]:
        value = emit("AddV2", emit("Mul", value, x), constant(coefficient, x.dtype))
    return value
