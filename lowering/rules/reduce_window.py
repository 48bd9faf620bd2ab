"""Reductions over windows that slide along any axes."""

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

    Numbers of a rectifier have no sign, which leaves them in the order of their bits, NaN last.
    """
    axes = windows(**window)
    if not of_rectifier or 0 in ctx.out_aval.shape:
        return _extremum(ctx, x, axes, lambda y: y)
    if ctx.mode is Mode.COMPILED:
        x = emit("Abs", x)  # Only elsewhere a rectifier takes the sign of NaN away.
    bits = bitcast(x, dtypes.signed(x.dtype))
    fill = bitcast(constant(-np.inf, x.dtype), bits.dtype)
    return bitcast(pool(ctx, bits, ctx.in_avals[0].shape, axes, fill, _max_pool), x.dtype)


@rule("reduce_window_min")
def reduce_window_min(ctx, x, **window):
    """NaN in a window gives NaN, and -0 is below 0."""
    reverse = "Neg" if x.dtype.is_floating else "Invert"
    return _extremum(ctx, x, windows(**window), lambda y: emit(reverse, y))


@rule("reduce_window_min", dtypes=dtypes.BOOL)
def reduce_window_min_bool(ctx, x, **window):
    return _extremum(ctx, x, windows(**window), lambda y: emit("LogicalNot", y))


def _extremum(ctx, x, axes, reverse):
    """The maximum, or the minimum by reversing the order before and after."""
    if 0 in ctx.out_aval.shape:
        return movement.broadcast(ctx, constant(0, x.dtype), ctx.out_aval.shape)
    x, shape = reverse(x), ctx.in_avals[0].shape
    keys = _keys(x)
    fill = constant(keys.dtype.min, keys.dtype)
    return reverse(_values(pool(ctx, keys, shape, axes, fill, _max_pool), x.dtype))


def _max_pool(x, sizes, strides):
    return tf.raw_ops.MaxPool(
        input=x, ksize=[1, *sizes, 1], strides=[1, *strides, 1], padding="VALID"
    )


def _keys(x):
    """Integers in the order of the values: the least is -inf, NaN is above everything."""
    if x.dtype.is_floating:
        # NaNs with a sign lie below -inf. Shifted past the least integer, they wrap around.
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


@decomposition("reduce_window_max", dtypes=dtypes.COMPLEX)
def reduce_window_max_complex(x, **window):
    init = jnp.full((), -np.inf, x.dtype)
    (result,) = fold([x], [init], lambda a, b: [lax.max(a[0], b[0])], windows(**window))
    return result


@decomposition("reduce_window_min", dtypes=dtypes.COMPLEX)
def reduce_window_min_complex(x, **window):
    init = jnp.full((), np.inf, x.dtype)
    (result,) = fold([x], [init], lambda a, b: [lax.min(a[0], b[0])], windows(**window))
    return result


@rule("reduce_window_sum")
def reduce_window_sum(ctx, x, **window):
    """Sums of low precision are accumulated in float32 and rounded once."""
    axes = windows(**window)
    out_shape = ctx.out_aval.shape
    if 0 in out_shape:
        return movement.broadcast(ctx, constant(0, x.dtype), out_shape)
    if x.dtype.is_complex:
        real, imag = (emit(part, x, Tout=x.dtype.real_dtype) for part in ("Real", "Imag"))
        return emit("Complex", _sum(ctx, real, axes), _sum(ctx, imag, axes), Tout=x.dtype)
    if x.dtype in (tf.float16, tf.bfloat16):
        return cast(_sum(ctx, cast(x, tf.float32), axes), x.dtype)
    if x.dtype.is_floating:
        return _sum(ctx, x, axes)
    if x.dtype.size < 8:
        return cast(_integer_sum(ctx, x, axes), x.dtype)
    # Each half of a 64-bit integer on its own, so that sums are exact in float64.
    bits = bitcast(x, tf.int64)
    low = emit("BitwiseAnd", bits, constant((1 << 32) - 1, tf.int64))
    high = emit("RightShift", bits, constant(32, tf.int64))
    high = emit("LeftShift", _integer_sum(ctx, high, axes), constant(32, tf.int64))
    return bitcast(emit("AddV2", _integer_sum(ctx, low, axes), high), x.dtype)


def _integer_sum(ctx, x, axes):
    """Sums of integers of up to 32 bits: exact in float64, once rounded to a whole number."""
    return cast(emit("Rint", _sum(ctx, cast(x, tf.float64), axes)), tf.int64)


def _sum(ctx, x, axes):
    size = math.prod(window.size for window in axes)
    mean = pool(ctx, x, ctx.in_avals[0].shape, axes, constant(0, x.dtype), _average_pool)
    return emit("Mul", mean, constant(size, x.dtype)) if size != 1 else mean


def _average_pool(x, sizes, strides):
    return tf.raw_ops.AvgPool(
        value=x, ksize=[1, *sizes, 1], strides=[1, *strides, 1], padding="VALID"
    )


@decomposition("reduce_window")
def reduce_window(*operands_and_inits, jaxpr, consts, **window):
    """Any function, of any number of operands, in the order in which XLA applies it."""
    count = len(operands_and_inits) // 2
    operands, inits = operands_and_inits[:count], operands_and_inits[count:]
    if not isinstance(jaxpr, jex_core.ClosedJaxpr):
        jaxpr = jex_core.ClosedJaxpr(jaxpr, consts)
    combine = computations.elementwise(jaxpr, operands[0].ndim)
    return fold(operands, inits, combine, windows(**window))
