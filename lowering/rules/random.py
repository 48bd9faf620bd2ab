"""PRNG keys and random bits."""

import math

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jax.extend.random import threefry2x32_p

from lowering import avals, jax_compat
from lowering.ops import cast, constant, dtypes
from lowering.passes import flattening
from lowering.registry import Trait, decomposition, rule
from lowering.tensors import threefry


@rule("random_wrap", "random_unwrap", "random_clone", held=True)
def random_wrap(ctx, key, **_):
    """Keys are held as their words."""
    return key


@rule("random_seed", held=True)
def random_seed(ctx, seeds, *, impl):
    return _lower(ctx, jax_compat.random_seed, seeds, impl=impl)


@rule("random_split", held=True)
def random_split(ctx, key, *, shape):
    return _lower(ctx, jax_compat.random_split, key, impl=_impl(ctx), shape=tuple(shape))


@rule("random_fold_in", held=True)
def random_fold_in(ctx, key, data):
    return _lower(ctx, jax_compat.random_fold_in, key, data, impl=_impl(ctx))


@rule("random_bits", held=True)
def random_bits(ctx, key, *, bit_width, shape):
    return _lower(
        ctx,
        jax_compat.random_bits,
        key,
        impl=_impl(ctx),
        bit_width=bit_width,
        shape=tuple(shape),
    )


def _impl(ctx):
    return jax_compat.key_impl(ctx.in_avals[0].dtype)


def _lower(ctx, fun, *operands, **params):
    """Applies a function of the implementation of the keys, which is written in JAX, to words."""
    words = [avals.physical_aval(aval) for aval in ctx.in_avals]
    partitionable = jax_compat.threefry_partitionable(ctx.eqn)
    return ctx.lower(
        fun, *operands, avals=words, as_function=True, partitionable=partitionable, **params
    )


@rule("threefry2x32", traits=Trait.ELEMENTWISE)
def threefry2x32(ctx, *operands):
    size = math.prod(ctx.out_avals[0].shape)
    return threefry.threefry2x32(
        ctx, *operands, is_large=not avals.is_at_most(size, flattening.SMALL)
    )


# Rotation distances of Threefry-4x32 (Salmon et al., "Parallel random numbers", SC 2011, Table 4).
_DISTANCES = (
    ((10, 26), (11, 21), (13, 27), (23, 5)),
    ((6, 20), (17, 11), (25, 10), (18, 20)),
)


def _mix(x, y, distance):
    """A sum, and its exclusive or with a rotation; see `threefry` for the multiplication."""
    x = x + y
    high, low = y * np.uint32(1 << distance), lax.shift_right_logical(y, np.uint32(32 - distance))
    return x, high ^ low ^ x


@decomposition("threefry4x32")
def threefry4x32(*operands):
    """Twenty rounds of Threefry-4x32."""
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
    """The halves of the 64-bit product of uint32s."""
    product = lax.convert_element_type(x, np.uint64) * np.uint64(multiplier)
    high = lax.shift_right_logical(product, np.uint64(32))
    return lax.convert_element_type(high, np.uint32), x * np.uint32(multiplier)


@decomposition("philox2x32")
def philox2x32(key, x0, x1):
    """Ten rounds of Philox-2x32 (Salmon et al., 2011)."""
    for _ in range(10):
        high, low = _high_and_low(x0, 0xD256D193)
        x0, x1 = high ^ x1 ^ key, low
        key = key + np.uint32(0x9E3779B9)
    return x0, x1


@decomposition("philox4x32")
def philox4x32(key0, key1, x0, x1, x2, x3):
    """Ten rounds of Philox-4x32."""
    for _ in range(10):
        high0, low0 = _high_and_low(x0, 0xD2511F53)
        high2, low2 = _high_and_low(x2, 0xCD9E8D57)
        x0, x1, x2, x3 = high2 ^ x1 ^ key0, low2, high0 ^ x3 ^ key1, low0
        key0, key1 = key0 + np.uint32(0x9E3779B9), key1 + np.uint32(0xBB67AE85)
    return x0, x1, x2, x3


@rule("rng_bit_generator", traits=Trait.PER_DEVICE)
def rng_bit_generator(ctx, key, *, shape, dtype, algorithm, **_):
    """The bits that XLA makes on the CPU, where Philox is the default."""
    state = key if key.dtype == tf.uint64 else tf.bitcast(tf.reshape(key, [2, 2]), tf.uint64)
    wide = np.dtype(np.uint64 if np.dtype(dtype).itemsize == 8 else np.uint32)
    if algorithm == lax.RandomAlgorithm.RNG_THREE_FRY:
        if not avals.is_static(shape):
            ctx.unsupported("the order of its bits depends on which dimensions are even")
        bits, used = ctx.lower(_threefry_bits, state, shape=tuple(shape), dtype=wide)
    else:
        bits, used = _philox_bits(ctx, state, shape, wide)
    state = state + tf.stack([tf.zeros_like(used), used])
    new_key = state if key.dtype == tf.uint64 else tf.reshape(tf.bitcast(state, tf.uint32), [4])
    return new_key, cast(bits, dtypes.to_tf(dtype))


def _philox_bits(ctx, state, shape, dtype):
    """Random bits, and by how much the counter advances.

    TensorFlow's own generator makes the same: 128 bits for each counter, in order.
    """
    bits = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=ctx.shape(shape),
        key=state[:1],
        counter=tf.reverse(state, [0]),  # Its high half begins as the key.
        alg=constant(1, np.int32),
        dtype=dtypes.to_tf(dtype),
    )
    used = ctx.size(-(-math.prod(shape) * dtype.itemsize // 16))
    return bits, constant(used, np.uint64) if isinstance(used, int) else cast(used, tf.uint64)


def _threefry_bits(state, *, shape, dtype):
    """Random bits, and by how much the counter advances."""
    key_low, key_high = _halves(state[0])
    if dtype == np.uint64:
        count = math.prod(shape)
        low, high = threefry2x32_p.bind(key_low, key_high, *_halves(_counters(state[1], shape)))
        joined = low.astype(np.uint64) | lax.shift_left(high.astype(np.uint64), np.uint64(32))
        return joined, jnp.full((), count, np.uint64)
    # The first even dimension, or else the largest, is split into pairs: each counter makes one.
    padded = list(shape) or [2]
    axis = next((i for i, d in enumerate(padded) if d % 2 == 0), int(np.argmax(padded)))
    padded[axis] += padded[axis] % 2
    halved = [d // 2 if i == axis else d for i, d in enumerate(padded)]
    count = math.prod(halved)
    pair = threefry2x32_p.bind(key_low, key_high, *_halves(_counters(state[1], halved)))
    bits = lax.reshape(jnp.stack(pair, axis + 1), padded)
    bits = bits[tuple(slice(d) for d in shape)] if shape else bits[0]
    return bits, jnp.full((), count, np.uint64)


def _counters(first, shape):
    return first + lax.reshape(lax.iota(np.uint64, math.prod(shape)), shape)


def _halves(x):
    """The low and the high half of uint64s."""
    high = lax.shift_right_logical(x, np.uint64(32))
    return x.astype(np.uint32), high.astype(np.uint32)


@rule("rng_uniform")
def rng_uniform(ctx, low, high, *, shape):
    """Other numbers than XLA's, whose generator has no specified state."""
    if low.dtype.is_integer or low.dtype.is_bool:
        wide = cast(low, tf.int64), cast(high, tf.int64)
        x = tf.random.uniform(ctx.shape(shape), *wide, dtype=tf.int64)
    else:
        wide = cast(low, tf.float64), cast(high, tf.float64)
        x = tf.random.uniform(ctx.shape(shape), *wide, dtype=tf.float64)
    return cast(x, low.dtype)
