"""Arrays made from nothing."""

import math

import numpy as np
import tensorflow as tf

from lowering.ops import cast, constant, dtypes
from lowering.registry import Trait, rule
from lowering.tensors import movement


@rule("iota", traits=Trait.NOT_HOISTED)
def iota(ctx, *dyn_shape, dtype, shape, dimension, **_):
    """Each element is its position along `dimension`."""
    size = ctx.size(shape[dimension])
    limit = constant(size, "int32") if isinstance(size, int) else size
    x = tf.raw_ops.Range(start=constant(0, "int32"), limit=limit, delta=constant(1, "int32"))
    x = cast(x, dtypes.to_tf(dtype))
    x = movement.reshape(ctx, x, [shape[dimension]] + [1] * (len(shape) - dimension - 1))
    return movement.broadcast(ctx, x, shape)


@rule("empty", "empty2", "create_linear")
def empty(ctx, **_):
    """Zeros, as JAX itself makes them on the CPU."""
    zero = constant(0, dtypes.to_tf(ctx.out_aval.dtype))
    return movement.broadcast(ctx, zero, ctx.out_aval.shape)


@rule("iota_2x32_shape", traits=Trait.BROADCASTS)
def iota_2x32_shape(ctx, *, shape):
    """The position of each element in row-major order, as the high and low half of 64 bits."""
    size = ctx.size(math.prod(shape))
    if not isinstance(size, int) or size <= np.iinfo(np.int32).max:
        size = constant(size, np.int32) if isinstance(size, int) else size
        x = tf.raw_ops.Range(start=constant(0, np.int32), limit=size, delta=constant(1, np.int32))
        # The high half is left to be broadcast.
        low = tf.bitcast(x, tf.uint32)
        return constant(0, np.uint32), low if len(shape) == 1 else movement.reshape(ctx, low, shape)
    zero, one = constant(0, np.int64), constant(1, np.int64)
    x = tf.raw_ops.Range(start=zero, limit=constant(size, np.int64), delta=one)
    high = cast(tf.bitwise.right_shift(x, constant(32, np.int64)), tf.uint32)
    return [movement.reshape(ctx, half, shape) for half in (high, cast(x, tf.uint32))]
