"""Reductions over windows that slide along any axes."""

import functools
import math

import jax.extend.core as jex_core
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import computations
from lowering.arrays.windows import fold, windows
from lowering.ops import bitcast, cast, constant, dtypes, emit
from lowering.registry import decomposition, rule
from lowering.targets import Mode
from lowering.tensors import movement, ordering
from lowering.tensors.pooling import pool


@rule("reduce_window_max")
def reduce_window_max(ctx, x, *, of_rectifier=False, **window):
    """NaN in a window gives NaN, and 0 is above -0.

    Numbers of a rectifier have no sign, so their bits are in their order, NaN last.
    """
    if 0 in ctx.out_aval.shape:
        return movement.broadcast(ctx, constant(0, x.dtype), ctx.out_aval.shape)
    if of_rectifier:
        # In compiled code NaN still has its sign.
        x = emit("Abs", x) if ctx.mode is Mode.COMPILED else x
        keys = bitcast(x, dtypes.signed(x.dtype))
        fill = bitcast(constant(-np.inf, x.dtype), keys.dtype)
    else:
        keys = _keys(x)
        fill = constant(keys.dtype.min, keys.dtype)
    max_pool = functools.partial(_pool, "MaxPool")
    maxima = pool(ctx, keys, ctx.in_avals[0].shape, windows(**window), fill, max_pool)
    return bitcast(maxima, x.dtype) if of_rectifier else _values(maxima, x.dtype)


@rule("reduce_window_min")
def reduce_window_min(ctx, x, **window):
    """The maximum in reversed order. NaN in a window gives NaN, and -0 is below 0."""
    if 0 in ctx.out_aval.shape:
        return reduce_window_max(ctx, x, **window)
    reverse = "LogicalNot" if x.dtype == tf.bool else "Neg" if x.dtype.is_floating else "Invert"
    return emit(reverse, reduce_window_max(ctx, emit(reverse, x), **window))


def _keys(x):
    """Integers in the order of the values, with NaN above everything and -inf as the lowest."""
    if x.dtype.is_floating:
        # In the total order, NaNs with a sign are below -inf. Once -inf is subtracted down to the
        # lowest integer, they wrap around to the highest ones.
        key = ordering.total_order(x)
        return emit("Sub", key, constant(_nan_payloads(x.dtype), key.dtype))
    if x.dtype in (tf.uint32, tf.uint64):
        key = bitcast(x, dtypes.carrier(x.dtype))
        return emit("BitwiseXor", key, constant(key.dtype.min, key.dtype))
    return cast(x, tf.uint8) if x.dtype == tf.bool else x


def _values(key, dtype):
    """The inverse of `_keys`."""
    if dtype.is_floating:
        key = emit("AddV2", key, constant(_nan_payloads(dtype), key.dtype))
        return ordering.from_total_order(key, dtype)
    if dtype in (tf.uint32, tf.uint64):
        return bitcast(emit("BitwiseXor", key, constant(key.dtype.min, key.dtype)), dtype)
    return cast(key, dtype)


def _nan_payloads(dtype):
    """How many NaNs of one sign there are."""
    return (1 << ml_dtypes.finfo(dtype.as_numpy_dtype).nmant) - 1


def _complex_extremum(combine, init):
    """A decomposition of the maximum or minimum of complex numbers, which no pooling op takes."""

    def decompose(x, **window):
        inits = [jnp.full((), init, x.dtype)]
        return fold([x], inits, lambda old, new: [combine(*old, *new)], windows(**window))[0]

    return decompose


decomposition("reduce_window_max", dtypes=dtypes.COMPLEX)(_complex_extremum(lax.max, -np.inf))
decomposition("reduce_window_min", dtypes=dtypes.COMPLEX)(_complex_extremum(lax.min, np.inf))


@rule("reduce_window_sum")
def reduce_window_sum(ctx, x, **window):
    """Sums of low precision are accumulated in float32 and rounded once."""
    axes = windows(**window)
    if 0 in ctx.out_aval.shape:
        return movement.broadcast(ctx, constant(0, x.dtype), ctx.out_aval.shape)
    if x.dtype.is_complex:
        real, imag = (emit(part, x, Tout=x.dtype.real_dtype) for part in ("Real", "Imag"))
        return emit("Complex", _sum(ctx, real, axes), _sum(ctx, imag, axes), Tout=x.dtype)
    if x.dtype in (tf.float16, tf.bfloat16):
        return cast(_sum(ctx, cast(x, tf.float32), axes), x.dtype)
    if x.dtype.is_floating:
        return _sum(ctx, x, axes)
    if x.dtype.size < 8:
        return cast(_integer_sum(ctx, x, axes), x.dtype)
    # The halves of 64-bit integers are summed apart, so that their sums are exact in float64.
    bits = bitcast(x, tf.int64)
    low = emit("BitwiseAnd", bits, constant((1 << 32) - 1, tf.int64))
    high = emit("RightShift", bits, constant(32, tf.int64))
    high = emit("LeftShift", _integer_sum(ctx, high, axes), constant(32, tf.int64))
    return bitcast(emit("AddV2", _integer_sum(ctx, low, axes), high), x.dtype)


def _integer_sum(ctx, x, axes):
    """Sums of integers of up to 32 bits: exact in float64, once rounded to a whole number."""
    return cast(emit("Rint", _sum(ctx, cast(x, tf.float64), axes)), tf.int64)


def _sum(ctx, x, axes):
    """A sum as the mean that TensorFlow has a pooling op for, times the size of the window."""
    average_pool = functools.partial(_pool, "AvgPool")
    mean = pool(ctx, x, ctx.in_avals[0].shape, axes, constant(0, x.dtype), average_pool)
    size = math.prod(window.size for window in axes)
    return emit("Mul", mean, constant(size, x.dtype)) if size != 1 else mean


def _pool(op, x, sizes, strides):
    return emit(op, x, ksize=[1, *sizes, 1], strides=[1, *strides, 1], padding="VALID")


@decomposition("reduce_window")
def reduce_window(*operands_and_inits, jaxpr, consts, **window):
    """Any function, of any number of operands, in the order in which XLA applies it."""
    count = len(operands_and_inits) // 2
    operands, inits = operands_and_inits[:count], operands_and_inits[count:]
    if not isinstance(jaxpr, jex_core.ClosedJaxpr):
        jaxpr = jex_core.ClosedJaxpr(jaxpr, consts)
    combine = computations.elementwise(jaxpr, operands[0].ndim)
    return fold(operands, inits, combine, windows(**window))
