"""Substitutes of exponentials, logarithms, and hyperbolic functions."""

import math

import numpy as np
import tensorflow as tf

from lowering import targets
from lowering.ops.constants import constant
from lowering.ops.emission import emit, substitute
from lowering.ops.substitutes.polynomials import horner, within
from lowering.targets.tfjs import quirks as tfjs
from lowering.targets.tflite import runtime_quirks as tflite


@substitute("Expm1")
def _expm1(x):
    """As tanh(x / 2) (exp(x) + 1), where nothing cancels out."""
    tangent = emit("Tanh", emit("Mul", x, constant(0.5, x.dtype)))
    return emit("Mul", tangent, emit("AddV2", exponential(x), constant(1, x.dtype)))


def exponential(x):
    """By a power of a number near e; see `tflite.runtime_quirks.digits_of_large_exponentials`."""
    if x.dtype == tf.float64 or not targets.current().has(tflite.digits_of_large_exponentials):
        return emit("Exp", x)
    base = np.float32(np.e)
    # Beyond this, results are infinite or zero.
    rest = emit("Mul", within(x, 128), constant(1 - math.log(base), x.dtype))
    return emit(
        "Mul", emit("Pow", constant(base, x.dtype), x), emit("AddV2", rest, constant(1, x.dtype))
    )


@substitute("Softplus")
def _softplus(x):
    """As log(1 + exp(-|x|)), which neither overflows nor loses digits, above a rectifier.

    The logarithm is the series of log((1 + s) / (1 - s)), where s is at most a third; that of
    float64 is Log1p.
    """
    power = emit("Exp", emit("Neg", emit("Abs", x)))
    if x.dtype == tf.float64:
        return emit("AddV2", emit("Relu", x), emit("Log1p", power))
    s = emit("RealDiv", power, emit("AddV2", power, constant(2, x.dtype)))
    rest = emit("Mul", s, horner(_LOG_OF_RATIO, emit("Mul", s, s)))
    return emit("AddV2", emit("Relu", x), rest)


# log((1 + s) / (1 - s)) / s for s^2 up to 1/9, up to 4e-9 of it: the interpolation at the points of
# Chebyshev, the highest power of s^2 first.
_LOG_OF_RATIO = (0.28157778, 0.27965158, 0.40024595, 0.66666322, 2.00000001)


@substitute("Log1p")
def _log1p(x):
    """With all digits; see `tfjs.quirks.log1p_of_small_numbers`."""
    target = targets.current()
    quirks = tflite.digits_of_logarithms_near_one, tfjs.log1p_of_small_numbers
    if x.dtype == tf.float32 and any(map(target.has, quirks)):
        return _with_digits_near_one(x, _finite_log(emit("AddV2", constant(1, x.dtype), x)))
    return _log_of_rounded_sum(x)


def _log_of_rounded_sum(x):
    """The logarithm of the rounded sum, and what the rounding is of it, to first order.

    Sums with numbers beyond the limits are rounded to what has the same logarithm, or are exact.
    """
    one = constant(1, x.dtype)
    limits = -0.5, 2 / np.finfo(x.dtype.as_numpy_dtype).eps
    near = emit("ClipByValue", x, *(constant(limit, x.dtype) for limit in limits))
    total = emit("AddV2", near, one)
    rounding = emit("Sub", near, emit("Sub", total, one))
    part = emit("RealDiv", rounding, total)
    # `grappler.quirks.logarithms_of_sums_with_one`.
    whole = emit("Sub", x, constant(-1, x.dtype))
    return emit("AddV2", emit("Log", whole), part)


def logarithm(x):
    """With all digits; see `tflite.runtime_quirks.digits_of_logarithms_near_one`."""
    return _with_digits_near_one(emit("Sub", x, constant(1, x.dtype)), _finite_log(x))


def _finite_log(x):
    """The logarithm; see `tflite.runtime_quirks.logarithms_of_the_largest_numbers`."""
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
    rest = emit("AddV2", half_square, emit("Mul", z, horner(_LOG1P, z)))
    near = emit("Sub", x, emit("Sub", half_square, emit("Mul", s, rest)))
    middle = emit("Sub", x, constant(0.06, x.dtype))
    is_near = emit("Less", emit("Abs", middle), constant(0.35, x.dtype))
    return emit("SelectV2", is_near, near, far)


# log((1 + s) / (1 - s)) / s - 2, over s^2, the highest power of s^2 first.
_LOG1P = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)


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
    """log(2 x) of large numbers; see `tflite.runtime_quirks.logarithms_of_the_largest_numbers`."""
    half = emit("Mul", x, constant(0.5, x.dtype))
    result = emit("AddV2", emit("Log", half), constant(2 * np.log(2), x.dtype))
    if not targets.current().has(tflite.logarithms_of_the_largest_numbers):
        return result
    # The product is infinite where x is, and less than the logarithm elsewhere.
    tiny = constant(np.finfo(x.dtype.as_numpy_dtype).tiny, x.dtype)
    return emit("Maximum", result, emit("Mul", x, tiny))


@substitute("Acosh")
def _acosh(x):
    one = constant(1, x.dtype)
    t = emit("Sub", x, one)
    root = emit("Sqrt", emit("AddV2", emit("Mul", t, t), emit("AddV2", t, t)))
    small = emit("Log1p", emit("AddV2", t, root))
    return emit("SelectV2", emit("Greater", x, constant(1e9, x.dtype)), _log_of_double(x), small)


@substitute("Atanh")
def _atanh(x):
    """The function of |x| with the sign of x, as the logarithm loses digits near -1."""
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
