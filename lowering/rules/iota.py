"""Arrays that are made of their shapes alone: positions, and zeros."""

import math

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.avals import real_dtype
from lowering.ops import bitcast, cast, constant, dtypes
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import TFJS
from lowering.tensors import movement


@rule("iota", traits=Trait.NOT_HOISTED)
def iota(ctx, *dyn_shape, dtype, shape, dimension, **_):
    """Each element is its position along `dimension`."""
    x = cast(_range(ctx.size(shape[dimension])), dtypes.to_tf(dtype))
    x = movement.reshape(ctx, x, [shape[dimension]] + [1] * (len(shape) - dimension - 1))
    return movement.broadcast(ctx, x, shape)


@legalization("iota", dtypes=dtypes.COMPLEX)
def iota_of_parts(*dyn_shape, dtype, shape, dimension, **_):
    real = lax.broadcasted_iota(real_dtype(dtype), shape, dimension)
    return lax.complex(real, jnp.zeros_like(real))


@decomposition("iota", target=TFJS, dtypes=(np.uint32,))
def iota_uint32_tfjs(*dyn_shape, dtype, shape, dimension, **_):
    return lax.broadcasted_iota(np.int32, shape, dimension).astype(dtype)


@legalization("iota_2x32_shape", dtypes=(np.uint32,))
def iota_2x32_shape_uint32(*, shape):
    low = lax.reshape(lax.iota(np.int32, math.prod(shape)), shape)
    return jnp.zeros(shape, np.uint32), low.astype(np.uint32)


@rule("empty", "empty2", "create_linear")
def empty(ctx, **_):
    """Zeros, as JAX itself makes them on the CPU."""
    zero = constant(0, dtypes.to_tf(ctx.out_aval.dtype))
    return movement.broadcast(ctx, zero, ctx.out_aval.shape)


@legalization("empty", "empty2", dtypes=dtypes.COMPLEX)
def empty_of_parts(*, dtype, shape=(), **_):
    return jnp.zeros(shape, dtype)


@rule("iota_2x32_shape", traits=Trait.BROADCASTS)
def iota_2x32_shape(ctx, *, shape):
    """The position of each element in row-major order, as the high and low half of 64 bits."""
    size, uint32 = ctx.size(math.prod(shape)), dtypes.to_tf(ctx.out_avals[0].dtype)
    if not isinstance(size, int) or size <= np.iinfo(np.int32).max:
        low = bitcast(_range(size), uint32)
        # The ops that use the high half broadcast it.
        return constant(0, uint32), low if len(shape) == 1 else movement.reshape(ctx, low, shape)
    x = _range(size, np.int64)
    high = cast(tf.bitwise.right_shift(x, constant(32, np.int64)), uint32)
    return [movement.reshape(ctx, half, shape) for half in (high, cast(x, uint32))]


def _range(size, dtype=np.int32):
    limit = constant(size, dtype) if isinstance(size, int) else size
    return tf.raw_ops.Range(start=constant(0, dtype), limit=limit, delta=constant(1, dtype))
