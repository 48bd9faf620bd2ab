"""The quotient of complex numbers, with the infinities and zeros of XLA.

XLA computes Smith's formula (R. L. Smith, "Algorithm 116: Complex division", 1962). Where both
parts are NaN, it chooses the quotient by whether the operands are zero, infinite or finite (ISO C,
G.5.1). TensorFlow's kernels compute another formula, which has other signs of zero, and make no
choice. What they miss is computed here, but only if a part of a quotient is zero or NaN at all.
"""

import math

import numpy as np
import tensorflow as tf

from lowering.context import Context
from lowering.ops import bitcast, emit, functions, modes
from lowering.targets import Mode
from lowering.tensors import movement


def divide(ctx: Context, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x / y` of complex tensors, which broadcast."""
    if ctx.mode is Mode.COMPILED:
        return _textbook(x, y)
    # A natural graph has one form, however it is run.
    divide = _corrected_if_nan if ctx.target.is_natural else _divide
    shape = ctx.out_aval.shape
    if len(shape) <= ctx.target.max_rank("SelectV2"):
        return _call(divide, x, y)
    # The function knows no shapes, which selections among so many axes need.
    size = [math.prod(shape)]
    full = [movement.broadcast(ctx, z, shape) if z.shape.rank else z for z in (x, y)]
    flat = [movement.reshape(ctx, z, size) if z.shape.rank else z for z in full]
    return movement.reshape(ctx, _call(divide, *flat), shape)


def _call(divide, x, y):
    quotient = functions.call(divide, x, y)
    quotient.set_shape(tf.broadcast_static_shape(x.shape, y.shape))
    return quotient


def _divide(x, y):
    return modes.by_mode(_exact, _textbook, x, y)


def _textbook(x, y):
    return emit("RealDiv", x, y)


def _exact(x, y):
    """`x / y` with the signs of zero that XLA has."""
    quotient = _textbook(x, y)
    # The product of the parts is zero or NaN if a part is, and seldom otherwise.
    product = tf.math.real(quotient) * tf.math.imag(quotient)
    is_special = emit("LogicalNot", emit("Greater", tf.abs(product), tf.zeros([], product.dtype)))
    return tf.cond(
        tf.reduce_any(is_special),
        lambda: _corrected(_with_special_parts(quotient, x, y), x, y),
        lambda: quotient,
    )


def _corrected_if_nan(x, y):
    quotient = _textbook(x, y)
    has_nan = tf.reduce_any(emit("NotEqual", quotient, quotient))
    return tf.cond(has_nan, lambda: _corrected(quotient, x, y), lambda: quotient)


def _with_special_parts(quotient, x, y):
    """`quotient`, whose parts that are zero or NaN are those of Smith's formula."""
    a, b, c, d = tf.math.real(x), tf.math.imag(x), tf.math.real(y), tf.math.imag(y)
    is_steep = tf.abs(c) < tf.abs(d)
    # (a + bi) / (c + di) is (b - ai) / (d - ci), which is used if |d| is the larger one.
    large, small = tf.where(is_steep, d, c), tf.where(is_steep, c, d)
    ratio = small / large
    size = large + small * ratio
    real = tf.where(is_steep, a * ratio + b, a + b * ratio) / size
    imag = tf.where(is_steep, b * ratio - a, b - a * ratio) / size
    p, q = tf.math.real(quotient), tf.math.imag(quotient)
    return tf.complex(_where_special(p, real), _where_special(q, imag))


def _where_special(part, replacement):
    return tf.where((part == 0) | tf.math.is_nan(part), replacement, part)


def _corrected(quotient, x, y):
    """`quotient`, replaced as in ISO C, G.5.1, where both of its parts are NaN."""
    a, b, c, d = tf.math.real(x), tf.math.imag(x), tf.math.real(y), tf.math.imag(y)
    p, q = tf.math.real(quotient), tf.math.imag(quotient)
    infinity = tf.constant(np.inf, a.dtype)
    is_nan = tf.math.is_nan(p) & tf.math.is_nan(q)
    by_zero = is_nan & (c == 0) & (d == 0)
    of_infinity = is_nan & _has_infinity(a, b) & _is_finite(c, d)
    by_infinity = is_nan & _is_finite(a, b) & _has_infinity(c, d)

    def choose(part, zero_divided, of_directions):
        part = tf.where(by_infinity, 0 * of_directions(a, b, _unit(c), _unit(d)), part)
        part = tf.where(of_infinity, infinity * of_directions(_unit(a), _unit(b), c, d), part)
        return tf.where(by_zero, _with_sign(infinity, c) * zero_divided, part)

    real = choose(p, a, lambda a, b, c, d: a * c + b * d)
    return tf.complex(real, choose(q, b, lambda a, b, c, d: b * c - a * d))


def _unit(x):
    """One for an infinity and zero for any other number, with the sign of `x`."""
    return _with_sign(tf.cast(tf.math.is_inf(x), x.dtype), x)


def _with_sign(size, x):
    is_negative = bitcast(x, tf.int32 if x.dtype == tf.float32 else tf.int64) < 0
    return tf.where(is_negative, -size, size)


def _has_infinity(x, y):
    return tf.math.is_inf(x) | tf.math.is_inf(y)


def _is_finite(x, y):
    return tf.math.is_finite(x) & tf.math.is_finite(y)
