"""Rounding to narrow floating-point formats, and wrapping around to narrow integers.

All functions take tensors of narrow numbers in storage dtypes; see
`passes.legalize.narrow_numbers`.
"""

import ml_dtypes
import numpy as np
import tensorflow as tf

from lowering import avals, narrow_formats, targets
from lowering.narrow_formats import HAS_CAST, format_of, width
from lowering.ops import bitcast, cast, constant, emit, kernels, modes
from lowering.ops.casts import narrowed, widened
from lowering.targets import Mode

# For floats the integers of the same width.
_SAME_SIZE = {tf.float32: tf.int32, tf.float64: tf.int64}


def narrow_to(x: tf.Tensor, dtype: np.dtype) -> tf.Tensor:
    """Numbers of a narrow dtype in their storage dtype, rounded or wrapped around.

    `x` is float32 for a float of 16 bits, float32 or float64 for shorter ones, else integers of
    eight bits, or int32 for other runtimes.
    """
    if dtype in narrow_formats.FLOAT:
        return _round(x, dtype)
    if dtype in avals.HALF_FLOATS:
        return _round_half(x, dtype)
    if x.dtype == tf.int32:
        return _wrap(x, dtype)
    if dtype in narrow_formats.UNSIGNED:
        return emit("BitwiseAnd", x, constant((1 << width(dtype)) - 1, np.uint8))
    unused = constant(8 - width(dtype), np.int8)
    return emit("RightShift", emit("LeftShift", cast(x, tf.int8), unused), unused)


def _wrap(x, dtype):
    """Integers in int32, wrapped around to the range of a dtype."""
    size = 1 << width(dtype)
    period = constant(size, np.int32)
    if not np.issubdtype(dtype, np.signedinteger) and dtype not in narrow_formats.SIGNED:
        return emit("FloorMod", x, period)
    half = constant(size // 2, np.int32)
    return emit("Sub", emit("FloorMod", emit("AddV2", x, half), period), half)


def _round_half(x, dtype):
    """Rounds float32 to float16 or bfloat16, ties to even."""
    info = ml_dtypes.finfo(dtype)
    number = tf.dtypes.as_dtype(dtype)
    # What TF.js has as float16 is float32.
    if targets.current().rounds_by_casts and kernels.casts(tf.float32, number):
        return widened(narrowed(x, number), tf.float32)
    size = emit("Abs", x)
    is_large = emit("Greater", size, constant(2.0**64, np.float32))
    scaled = emit("SelectV2", is_large, _times(size, 2.0**-64), size)
    rounded = _round_size(scaled, info)
    rounded = emit("SelectV2", is_large, _times(rounded, 2.0**64), rounded)
    is_infinite = emit("Greater", rounded, constant(float(info.max), np.float32))
    rounded = emit("SelectV2", is_infinite, constant(np.inf, np.float32), rounded)
    # All but NaN, infinities, and zeros, whose signs some kernels of Sign lose: twice these is the
    # same. Twice a subnormal number is zero where it is taken for zero.
    has_half = emit("Less", _times(size, 0.5), size)
    return emit("SelectV2", has_half, emit("Mul", emit("Sign", x), rounded), _times(x, 2.0))


def _round(x, dtype):
    """Rounds floats to a format of eight bits or fewer, ties to even."""
    has_bits = targets.current().has_tensorflow_kernels
    has_cast = has_bits and dtype in HAS_CAST and x.dtype == tf.float32
    if has_cast and modes.current() is not Mode.COMPILED:
        # XLA converts one number at a time; it runs the ops below several times as fast.
        return tf.cast(tf.cast(x, dtype), tf.float32)
    form = format_of(dtype)
    beyond = constant(2.0**20, x.dtype)  # It overflows, as infinity does.
    rounded = _round_size(emit("Minimum", emit("Abs", x), beyond), ml_dtypes.finfo(dtype))
    is_large = emit("Greater", rounded, constant(form.largest, x.dtype))
    rounded = emit("SelectV2", is_large, constant(form.overflow, x.dtype), rounded)
    # Runtimes without bitcasts lose the signs of zeros.
    result = _with_sign(rounded, x, form) if has_bits else emit("Mul", emit("Sign", x), rounded)
    nan = constant(-0.0, x.dtype) if form.nan is None else x
    return cast(emit("SelectV2", emit("Equal", x, x), result, nan), tf.float32)


def _with_sign(size, x, form):
    """`size` with the sign of `x`; zeros have one only if the format has negative zeros."""
    integer = _SAME_SIZE[x.dtype]
    sign = emit("BitwiseAnd", bitcast(x, integer), constant(integer.min, integer))
    if not form.has_negative_zero:
        is_zero = emit("Equal", size, constant(0, x.dtype))
        sign = emit("SelectV2", is_zero, constant(0, integer), sign)
    return bitcast(emit("BitwiseOr", bitcast(size, integer), sign), x.dtype)


def _round_size(size, info):
    """Numbers from 0 to 2**64 in as many digits as a format has, ties to even.

    Adding a number whose last digit is the last that remains, and subtracting it, rounds.
    """
    digits = np.finfo(size.dtype.as_numpy_dtype).nmant
    # The number of one digit that is nearest (T. J. Dekker, 1971), or half of it if that is larger.
    product = _times(size, 2.0**digits + 1)
    power = emit("Sub", product, emit("Sub", product, size))
    power = emit("SelectV2", emit("Greater", power, size), _times(power, 0.5), power)
    least = constant(float(info.smallest_subnormal), size.dtype)
    unit = emit("Maximum", _times(power, 2.0**-info.nmant), least)
    shift = _times(unit, 1.5 * 2.0**digits)
    return emit("Sub", emit("AddV2", size, shift), shift)


def _times(x, factor):
    return emit("Mul", x, constant(factor, x.dtype))
