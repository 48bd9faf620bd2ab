"""Uniform random numbers by the generator of TensorFlow, which has a state of its own."""

import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import integers
from lowering.ops import cast, constant, dtypes, emit
from lowering.registry import Trait, legalization, rule


def _uniform_for_consumer(ctx, low, high, shape):
    """Numbers of float32 between the bounds, rounded down to integers, but not below the lower."""
    size = tf.random.uniform(ctx.shape(shape))
    first, last = cast(low, tf.float32), cast(high, tf.float32)
    number = emit("AddV2", first, emit("Mul", size, emit("Sub", last, first)))
    if low.dtype.is_floating:
        return cast(number, low.dtype)
    # float32 may round up to the upper limit, which may be more than int32 holds.
    most = np.nextafter(np.float32(2**31), np.float32(0))
    rounded = cast(emit("Minimum", emit("Floor", number), constant(most)), low.dtype)
    highest = emit("Sub", high, constant(1, low.dtype))
    return emit("Maximum", emit("Minimum", rounded, highest), low)


@legalization("rng_uniform", dtypes=dtypes.UNSIGNED_32)
def rng_uniform_uint32(low, high, *, shape):
    return integers.on_signed_order(lax.rng_uniform, low, high, shape=shape)


@rule("rng_uniform", traits=Trait.DRAWS | Trait.NOT_FOLDED)
def rng_uniform(ctx, low, high, *, shape):
    """The numbers are not XLA's, because the state of its generator is not specified."""
    if ctx.target.is_consumer:
        return _uniform_for_consumer(ctx, low, high, shape)
    wide = tf.float64 if low.dtype.is_floating else tf.int64
    bounds = cast(low, wide), cast(high, wide)
    return cast(tf.random.uniform(ctx.shape(shape), *bounds, dtype=wide), low.dtype)
