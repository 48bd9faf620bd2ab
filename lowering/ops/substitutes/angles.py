"""Substitutes of trigonometric functions and their inverses."""

import math

import numpy as np
import tensorflow as tf

from lowering.ops import kernels
from lowering.ops.constants import constant
from lowering.ops.emission import emit, substitute
from lowering.ops.substitutes.movement import shape_of
from lowering.ops.substitutes.polynomials import horner

# Half a turn in three parts, of which few bits are set, so that their products with the number of
# half turns in an angle up to this limit are exact: W. J. Cody and W. M. Waite, "Software Manual
# for the Elementary Functions", 1980.
_HALF_TURN = (3.140625, 9.67502593994140625e-4, 1.50995799097837643e-7)
_LARGE_ANGLE = 10_000.0
# The same for float64.
_HALF_TURN_OF_DOUBLE = (3.1415926534682512, 1.2154201018028943e-10, -5.016557612668332e-20)
_LARGE_ANGLE_OF_DOUBLE = 3e6
# Up to a quarter of a turn six terms of the series are a sine, up to rounding.
_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(5, -1, -1))


@substitute("Sin")
def sine(x):
    """By a series, or in float64 by the sine of an angle of at most a quarter of a turn.

    See `tfjs.quirks.digits_of_sines` and `onnx.quirks.digits_of_sines`.
    """
    return _unless_large("Sin", x, _sine(x))


@substitute("Cos")
def cosine(x):
    """As `sine`."""
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
    is_double = x.dtype == tf.float64
    for part in _HALF_TURN_OF_DOUBLE if is_double else _HALF_TURN:
        x = emit("Sub", x, emit("Mul", half_turns, constant(part, x.dtype)))
    sine = emit("Sin", x) if is_double else emit("Mul", x, horner(_SIN, emit("Mul", x, x)))
    pairs = emit("Mul", turns, constant(0.5, x.dtype))
    # One half if `turns` is odd.
    odd = emit("Sub", pairs, emit("Floor", pairs))
    sign = emit("Sub", constant(1, x.dtype), emit("Mul", odd, constant(4, x.dtype)))
    return emit("Mul", sign, sine)


def _unless_large(op, x, result):
    """The op itself for angles whose digits the reduction would lose."""
    limit = _LARGE_ANGLE_OF_DOUBLE if x.dtype == tf.float64 else _LARGE_ANGLE
    is_large = emit("Greater", emit("Abs", x), constant(limit, x.dtype))
    return emit("SelectV2", is_large, emit(op, x), result)


@substitute("Tan")
def _tan(x):
    if kernels.supports("Sin", x.dtype):
        return emit("RealDiv", emit("Sin", x), emit("Cos", x))
    return _unless_large("Tan", x, emit("RealDiv", _sine(x), _cosine(x)))


@substitute("Atan")
def _atan(x):
    if not kernels.supports("Atan2", x.dtype):
        return _atan_of_double(x)
    # Not all kernels of Atan2 broadcast.
    return emit("Atan2", x, emit("Fill", shape_of(x, tf.int32), constant(1, x.dtype)))


# atan(x) / x - 1 over x^2, the highest power of x^2 first, up to 7/16: Sun Microsystems, fdlibm,
# `s_atan.c`, 1993, for float64.
_ATAN = (
    *(0.0162858201153657823623, -0.036531572744216915527, 0.0497687799461593236017),
    *(-0.0583357013379057348645, 0.0666107313738753120669, -0.0769187620504482999495),
    *(0.0909088713343650656196, -0.111111104054623557880, 0.142857142725034663711),
    *(-0.199999999998764832476, 0.333333333333329318027),
)


def _atan_of_double(x):
    """By the inverse of large numbers, and by (x - 1) / (x + 1) for numbers near one."""
    one, size = constant(1, x.dtype), emit("Abs", x)
    least = emit("Minimum", size, emit("RealDiv", one, size))
    is_near_one = emit("Greater", least, constant(math.tan(math.pi / 8), x.dtype))
    turned = emit("RealDiv", emit("Sub", least, one), emit("AddV2", least, one))
    t = emit("SelectV2", is_near_one, turned, least)
    z = emit("Mul", t, t)
    angle = emit("Sub", t, emit("Mul", t, emit("Mul", z, horner(_ATAN, z))))
    beside = emit("AddV2", constant(math.pi / 4, x.dtype), angle)
    angle = emit("SelectV2", is_near_one, beside, angle)
    other = emit("Sub", constant(math.pi / 2, x.dtype), angle)
    angle = emit("SelectV2", emit("Greater", size, one), other, angle)
    return emit("Mul", emit("Sign", x), angle)


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
    """The angle between sizes, mirrored to the other quadrants.

    Sizes that are equal have the same one, infinities and zeros, too, of which it is zero.
    """
    zero = constant(0, x.dtype)
    height, width = emit("Abs", y), emit("Abs", x)
    is_even = emit("Equal", height, width)
    slope = emit("SelectV2", is_even, emit("Sign", width), emit("RealDiv", height, width))
    angle = emit("Atan", slope)
    turned = emit("Sub", constant(np.pi, x.dtype), angle)
    angle = emit("SelectV2", emit("Less", x, zero), turned, angle)
    return emit("SelectV2", emit("Less", y, zero), emit("Neg", angle), angle)
