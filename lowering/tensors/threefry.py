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

XLA is given most rounds in a loop, so that it computes the hash apart from what uses it. In one
loop with an argmax, the uses of uses of a number are so many that LLVM does not finish compiling
(github.com/llvm/llvm-project/pull/211711).
"""

import functools

import numpy as np
import tensorflow as tf

from lowering.context import Context
from lowering.ops import constant, functions
from lowering.targets import Mode

# Rotation distances, from Table 4 of the paper.
DISTANCES = np.array([[13, 15, 26, 6], [17, 29, 16, 24]], np.uint32)

# A rotation multiplies for its high bits. For its low bits it shifts, or multiplies a float.
_MULTIPLIERS = np.uint32(1) << DISTANCES
_SHIFTS = np.uint32(32) - DISTANCES
_FACTORS = 0.5**_SHIFTS
_MULTIPLIERS_AND_SHIFTS = np.concatenate([_MULTIPLIERS, _SHIFTS], axis=1)

# The constant of Skein's key schedule.
PARITY = 0x1BD11BDA


def threefry2x32(ctx: Context, *operands: tf.Tensor, is_large: bool) -> list[tf.Tensor]:
    """The hash of (x0, x1) under (key0, key1), uint32 tensors that broadcast.

    `is_large` says whether the work in a kernel outweighs the cost of starting it.
    """
    by_floats = functools.partial(functions.call, _by_floats)
    if ctx.mode is Mode.COMPILED:
        return _apart(*operands)
    if not is_large:
        return functions.call(_by_shifts, *operands)
    if ctx.target.is_natural and ctx.mode is Mode.GRAPH:
        return by_floats(*operands)
    return ctx.by_mode(by_floats, _apart, *operands)


def _apart(*operands):
    results = functions.call(_in_loop, *operands)
    # TensorFlow does not infer the shapes of what a loop returns.
    shape = functools.reduce(tf.broadcast_static_shape, (x.shape for x in operands))
    for result in results:
        result.set_shape(shape)
    return results


def _by_shifts(key0, key1, x0, x1):
    return _rounds(_group_by_shifts, key0, key1, x0, x1)


def _by_floats(key0, key1, x0, x1):
    return _rounds(_group_by_floats, key0, key1, x0, x1)


def _rounds(group, key0, key1, x0, x1):
    keys, x0, x1 = _start(key0, key1, x0, x1)
    for i in range(5):
        keys, x0, x1 = group(i % 2, constant(i + 1, np.uint32), keys, x0, x1)
    return x0, x1


def _in_loop(key0, key1, x0, x1):
    """A turn of the loop takes eight rounds, after which the rotations repeat."""
    one = constant(1, np.uint32)
    last = constant(5, np.uint32)

    def turn(number, keys, x0, x1):
        second = number + one
        third = second + one
        return (third, *_group_by_shifts(0, third, *_group_by_shifts(1, second, keys, x0, x1)))

    state = (one, *_group_by_shifts(0, one, *_start(key0, key1, x0, x1)))
    *_, x0, x1 = tf.while_loop(lambda number, *_: tf.less(number, last), turn, state)
    return x0, x1


def _start(key0, key1, x0, x1):
    """The key schedule, and x0 and x1 with the keys added."""
    keys = key0, key1, _xor(_xor(key0, key1), constant(PARITY, np.uint32))
    return keys, x0 + key0, x1 + key1


def _group_by_shifts(parity, number, keys, x0, x1):
    # Constants are vectors, as each of their elements would be a node of its own.
    amounts = constant(_MULTIPLIERS_AND_SHIFTS[parity])
    return _with_keys(number, keys, *functions.call(_four_rounds_by_shifts, x0, x1, amounts))


def _group_by_floats(parity, number, keys, x0, x1):
    amounts = constant(_MULTIPLIERS[parity]), constant(_FACTORS[parity])
    return _with_keys(number, keys, *functions.call(_four_rounds_by_floats, x0, x1, *amounts))


def _with_keys(number, keys, x0, x1):
    """The end of a group of four rounds: it adds keys and its number, from 1 to 5."""
    first, second, third = keys
    return (second, third, first), x0 + second, x1 + (third + number)


def _four_rounds_by_shifts(x0, x1, multipliers_and_shifts):
    amounts = tf.unstack(multipliers_and_shifts, 8)
    return _four_rounds(_shift_right, x0, x1, amounts[:4], amounts[4:])


def _four_rounds_by_floats(x0, x1, multipliers, factors):
    multipliers, factors = tf.unstack(multipliers, 4), tf.unstack(factors, 4)
    return _four_rounds(_scale_down, x0, x1, multipliers, factors)


def _four_rounds(shift_right, x0, x1, multipliers, amounts):
    for multiplier, amount in zip(multipliers, amounts, strict=True):
        x0 = x0 + x1
        low = shift_right(x1, amount)
        x1 = _xor(_xor(x1 * multiplier, low), x0)
    return x0, x1


def _shift_right(x, distance):
    return tf.raw_ops.RightShift(x=x, y=distance)


def _scale_down(x, factor):
    return tf.cast(tf.cast(x, tf.float64) * factor, tf.uint32)


def _xor(x, y):
    return tf.raw_ops.BitwiseXor(x=x, y=y)
