"""Threefry-2x32, the hash behind JAX's default PRNG, in TensorFlow ops.

Twenty rounds of an addition, a rotation and an exclusive or (Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", SC 2011). In a graph they are calls of a function of four rounds,
so that a program has these ops once.

TensorFlow's kernels of additions, multiplications, exclusive or and conversions are vectorized;
those of shifts are not. So a shift to the left is a multiplication. A shift to the right is one
too, by a negative power of two in float64, which holds every uint32, but only in large tensors
outside of XLA: XLA's own shifts are fast, and in small tensors it is the number of ops that counts.
"""

import functools

import numpy as np
import tensorflow as tf

from lowering.context import Context
from lowering.ops import constant, functions

# Rotation distances, from Table 4 of the paper.
_DISTANCES = np.array([[13, 15, 26, 6], [17, 29, 16, 24]], np.uint32)

# What a rotation multiplies by, or shifts by, for its high and for its low bits.
_MULTIPLIERS = np.uint32(1) << _DISTANCES
_SHIFTS = np.uint32(32) - _DISTANCES
_FACTORS = 0.5**_SHIFTS

# The constant of Skein's key schedule.
_PARITY = 0x1BD11BDA


def threefry2x32(
    ctx: Context,
    key0: tf.Tensor,
    key1: tf.Tensor,
    x0: tf.Tensor,
    x1: tf.Tensor,
    *,
    is_large: bool,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The hash of each pair of uint32 words under a pair of key words; operands broadcast.

    Args:
      ctx: the context of the rule.
      key0: the first words of keys.
      key1: their second words.
      x0: the first words of what is hashed.
      x1: its second words.
      is_large: whether the work in a kernel outweighs the cost of running it.
    """
    operands = (key0, key1, x0, x1)
    by_shifts = functools.partial(functions.call, _by_shifts)
    if not is_large:
        return by_shifts(*operands)
    return ctx.by_mode(functools.partial(functions.call, _by_floats), by_shifts, *operands)


def _by_shifts(key0, key1, x0, x1):
    return _rounds(_four_rounds_by_shifts, _SHIFTS, key0, key1, x0, x1)


def _by_floats(key0, key1, x0, x1):
    return _rounds(_four_rounds_by_floats, _FACTORS, key0, key1, x0, x1)


def _rounds(four_rounds, low_factors, key0, key1, x0, x1):
    schedule = [key0, key1, _xor(_xor(key0, key1), constant(_PARITY, np.uint32))]
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for i in range(5):
        # Vectors, as each of their elements would be a node.
        high, low = constant(_MULTIPLIERS[i % 2]), constant(low_factors[i % 2])
        x0, x1 = functions.call(four_rounds, x0, x1, high, low)
        x0 = x0 + schedule[(i + 1) % 3]
        x1 = x1 + (schedule[(i + 2) % 3] + constant(i + 1, np.uint32))
    return x0, x1


def _four_rounds_by_shifts(x0, x1, multipliers, shifts):
    for multiplier, shift in zip(tf.unstack(multipliers, 4), tf.unstack(shifts, 4), strict=True):
        x0 = x0 + x1
        low = tf.raw_ops.RightShift(x=x1, y=shift)
        x1 = _xor(_xor(x1 * multiplier, low), x0)
    return x0, x1


def _four_rounds_by_floats(x0, x1, multipliers, factors):
    for multiplier, factor in zip(tf.unstack(multipliers, 4), tf.unstack(factors, 4), strict=True):
        x0 = x0 + x1
        low = tf.cast(tf.cast(x1, tf.float64) * factor, tf.uint32)
        x1 = _xor(_xor(x1 * multiplier, low), x0)
    return x0, x1


def _xor(x, y):
    return tf.raw_ops.BitwiseXor(x=x, y=y)
