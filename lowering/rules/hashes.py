"""The hashes that random bits are made by: Threefry and Philox."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals
from lowering.arrays import split_arithmetic as arithmetic
from lowering.arrays.uint32 import INT32
from lowering.passes import flattening
from lowering.registry import Trait, decomposition, rule
from lowering.rules.uint32_parts import register
from lowering.targets import CONSUMER, TFJS, TFLITE
from lowering.tensors import threefry


@rule("threefry2x32", traits=Trait.ELEMENTWISE | Trait.LONG)
def threefry2x32(ctx, *operands):
    size = math.prod(ctx.out_avals[0].shape)
    is_large = not avals.is_at_most(size, flattening.SMALL)
    return threefry.threefry2x32(ctx, *operands, is_large=is_large)


@decomposition("threefry2x32", target=CONSUMER)
def threefry2x32_consumer(key0, key1, x0, x1):
    """Each step as its own op: sums, products, shifts and exclusive or of uint32."""
    schedule = [key0, key1, key0 ^ key1 ^ np.uint32(threefry.PARITY)]
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for i in range(5):
        for distance in threefry.DISTANCES[i % 2]:
            x0, x1 = _mix(x0, x1, int(distance))
        x0 = x0 + schedule[(i + 1) % 3]
        x1 = x1 + (schedule[(i + 2) % 3] + np.uint32(i + 1))
    return x0, x1


def threefry2x32_of_parts(key0, key1, x0, x1):
    """The hash of 16-bit parts in as few ops as possible, as it is most of the cost of a draw."""
    parity = arithmetic.known(threefry.PARITY)
    schedule = [key0, key1, functools.reduce(_xor, (key0, key1, parity))]
    terms, x1 = [x0, key0], arithmetic.add(x1, key1)
    for i in range(5):
        for distance in threefry.DISTANCES[i % 2]:
            total = arithmetic.add(*terms, x1)
            terms, x1 = [total], _xor(arithmetic.rotate_left(x1, int(distance)), total)
        terms.append(schedule[(i + 1) % 3])
        x1 = arithmetic.add(x1, schedule[(i + 2) % 3], arithmetic.known(i + 1))
    return *arithmetic.add(*terms), *x1


_xor = functools.partial(arithmetic.bitwise, "xor")
register({"threefry2x32": threefry2x32_of_parts}, dtypes=(INT32,) * 4, traits=Trait.LONG)


# Rotation distances of Threefry-4x32 (Salmon et al., "Parallel random numbers", SC 2011, Table 4).
_DISTANCES = (((10, 26), (11, 21), (13, 27), (23, 5)), ((6, 20), (17, 11), (25, 10), (18, 20)))


def _mix(x, y, distance):
    """x + y, and the exclusive or of that with y rotated left; see `tensors.threefry`."""
    x = x + y
    high, low = y * np.uint32(1 << distance), lax.shift_right_logical(y, np.uint32(32 - distance))
    return x, (high + low) ^ x  # They have no bit in common.


@decomposition("threefry4x32", traits=Trait.LONG)
def threefry4x32(*operands):
    key, x = operands[:4], list(operands[4:])
    schedule = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ np.uint32(0x1BD11BDA)]
    x = [word + k for word, k in zip(x, schedule)]
    for i in range(5):
        for step, (first, second) in enumerate(_DISTANCES[i % 2]):
            left, right = (1, 3) if step % 2 == 0 else (3, 1)
            x[0], x[left] = _mix(x[0], x[left], first)
            x[2], x[right] = _mix(x[2], x[right], second)
        x = [word + schedule[(i + 1 + j) % 5] for j, word in enumerate(x)]
        x[3] = x[3] + np.uint32(i + 1)
    return tuple(x)


def _high_and_low(x, multiplier):
    """The upper and the lower 32 bits of a product of uint32."""
    multiplier = jnp.full(x.shape, multiplier, np.uint32)
    return lax.mulhi(x, multiplier), x * multiplier


def _philox2x32_round(key, x0, x1):
    high, low = _high_and_low(x0, 0xD256D193)
    return key + np.uint32(0x9E3779B9), high ^ x1 ^ key, low


def _philox4x32_round(key0, key1, x0, x1, x2, x3):
    high0, low0 = _high_and_low(x0, 0xD2511F53)
    high2, low2 = _high_and_low(x2, 0xCD9E8D57)
    keys = key0 + np.uint32(0x9E3779B9), key1 + np.uint32(0xBB67AE85)
    return *keys, high2 ^ x1 ^ key0, low2, high0 ^ x3 ^ key1, low0


# Ten rounds (Salmon et al., 2011).
_PHILOX_ROUNDS = 10


def _rounds(one_round, *words):
    for _ in range(_PHILOX_ROUNDS):
        words = one_round(*words)
    return words


def _rounds_by_loop(one_round, *words):
    """A round takes hundreds of ops of TF.js, and converters take minutes for thousands."""
    words = tuple(jnp.broadcast_arrays(*words))
    return lax.fori_loop(0, _PHILOX_ROUNDS, lambda _, words: one_round(*words), words)


@decomposition("philox2x32", traits=Trait.LONG)
def philox2x32(*words):
    return _rounds(_philox2x32_round, *words)[1:]


@decomposition("philox2x32", target=TFLITE)
@decomposition("philox2x32", target=TFJS)
def philox2x32_by_loop(*words):
    return _rounds_by_loop(_philox2x32_round, *words)[1:]


@decomposition("philox4x32", traits=Trait.LONG)
def philox4x32(*words):
    return _rounds(_philox4x32_round, *words)[2:]


@decomposition("philox4x32", target=TFLITE)
@decomposition("philox4x32", target=TFJS)
def philox4x32_by_loop(*words):
    return _rounds_by_loop(_philox4x32_round, *words)[2:]
