"""Threefry-2x32, the hash behind JAX's default PRNG, in TensorFlow ops.

Twenty rounds of an addition, a rotation and an exclusive or (Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", SC 2011). In a graph they are calls of a function of four rounds, so
that a program has these ops once.

TensorFlow has vectorized kernels of additions, multiplications, exclusive or and conversions, but
not of shifts. So a shift to the left is a multiplication. In large tensors a shift to the right is
one, too: by a negative power of two, in float64, which holds every uint32. In small tensors this
would not pay, as there the number of ops counts; nor would it in XLA, whose shifts are fast. A
natural graph has no switch between the two: for large tensors it multiplies, unless it is traced to
be compiled (the row random_normal of tools/bench.py takes 1.2 times as long by shifts).
"""

import functools

import numpy as np
import tensorflow as tf

from lowering.context import Context
from lowering.ops import constant, functions
from lowering.targets import Mode

# Rotation distances, from Table 4 of the paper.
DISTANCES = np.array([[13, 15, 26, 6], [17, 29, 16, 24]], np.uint32)

# A rotation multiplies by the first for its high bits. For its low bits it shifts by the second.
_MULTIPLIERS = np.uint32(1) << DISTANCES
_SHIFTS = np.uint32(32) - DISTANCES

# The constant of Skein's key schedule.
PARITY = 0x1BD11BDA


def threefry2x32(ctx: Context, *operands: tf.Tensor, is_large: bool) -> list[tf.Tensor]:
    """The hash of words under keys: of (key0, key1, x0, x1), uint32 tensors that broadcast.

    `is_large` says whether the work in a kernel outweighs the cost of starting it.
    """
    by_shifts = functools.partial(functions.call, _by_shifts)
    by_floats = functools.partial(functions.call, _by_floats)
    if not is_large:
        return by_shifts(*operands)
    if ctx.target.is_natural and ctx.mode is Mode.GRAPH:
        return by_floats(*operands)
    return ctx.by_mode(by_floats, by_shifts, *operands)


def _by_shifts(key0, key1, x0, x1):
    return _rounds(_four_rounds_by_shifts, _SHIFTS, key0, key1, x0, x1)


def _by_floats(key0, key1, x0, x1):
    return _rounds(_four_rounds_by_floats, 0.5**_SHIFTS, key0, key1, x0, x1)


def _rounds(four_rounds, amounts, key0, key1, x0, x1):
    schedule = [key0, key1, _xor(_xor(key0, key1), constant(PARITY, np.uint32))]
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for i in range(5):
        # Constants are vectors, as each of their elements would be a node of its own.
        high, low = constant(_MULTIPLIERS[i % 2]), constant(amounts[i % 2])
        x0, x1 = functions.call(four_rounds, x0, x1, high, low)
        x0 = x0 + schedule[(i + 1) % 3]
        x1 = x1 + (schedule[(i + 2) % 3] + constant(i + 1, np.uint32))
    return x0, x1


def _four_rounds_by_shifts(x0, x1, multipliers, shifts):
    return _four_rounds(lambda x, y: tf.raw_ops.RightShift(x=x, y=y), x0, x1, multipliers, shifts)


def _four_rounds_by_floats(x0, x1, multipliers, factors):
    def shift_right(x, factor):
        return tf.cast(tf.cast(x, tf.float64) * factor, tf.uint32)

    return _four_rounds(shift_right, x0, x1, multipliers, factors)


def _four_rounds(shift_right, x0, x1, multipliers, amounts):
    for multiplier, amount in zip(tf.unstack(multipliers, 4), tf.unstack(amounts, 4), strict=True):
        x0 = x0 + x1
        low = shift_right(x1, amount)
        x1 = _xor(_xor(x1 * multiplier, low), x0)
    return x0, x1


def _xor(x, y):
    return tf.raw_ops.BitwiseXor(x=x, y=y)
