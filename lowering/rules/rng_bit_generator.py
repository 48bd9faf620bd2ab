"""Random bits by XLA's generators: Philox, which is the default, and Threefry."""

import math

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jax.extend.random import threefry2x32_p

from lowering import avals
from lowering.ops import cast, constant, dtypes
from lowering.registry import Trait, decomposition, rule
from lowering.rules.hashes import philox4x32, philox4x32_by_loop
from lowering.targets import CONSUMER, TFJS, TFLITE


@rule("rng_bit_generator", traits=Trait.PER_DEVICE | Trait.LONG)
def rng_bit_generator(ctx, key, *, shape, dtype, algorithm, **_):
    """The bits that XLA makes on the CPU, where Philox is the default."""
    is_threefry = algorithm == lax.RandomAlgorithm.RNG_THREE_FRY
    if is_threefry and (avals.is_static(shape) or np.dtype(dtype).itemsize == 8):
        params = {"shape": tuple(shape), "dtype": np.dtype(dtype), "algorithm": algorithm}
        return ctx.lower(rng_bit_generator_uint32, key, avals=ctx.in_avals, **params)
    state = key if key.dtype == tf.uint64 else tf.bitcast(tf.reshape(key, [2, 2]), tf.uint64)
    wide = np.dtype(np.uint64 if np.dtype(dtype).itemsize == 8 else np.uint32)
    if is_threefry:
        bits, used = ctx.lower(_symbolic_threefry_bits, state, shape=tuple(shape))
    else:
        bits, used = _philox_bits(ctx, state, shape, wide)
    state = state + tf.stack([tf.zeros_like(used), used])
    new_key = state if key.dtype == tf.uint64 else tf.reshape(tf.bitcast(state, tf.uint32), [4])
    return new_key, cast(bits, dtypes.to_tf(dtype))


@decomposition("rng_bit_generator", target=CONSUMER)
def rng_bit_generator_uint32(key, *, philox=philox4x32, shape, dtype, algorithm, **_):
    """All in uint32: `key` is the key and the counter, each with its low 32 bits first."""
    if key.dtype == np.uint64:
        words, bits = rng_bit_generator_uint32(
            lax.reshape(lax.bitcast_convert_type(key, np.uint32), (4,)),
            **dict(philox=philox, shape=shape, dtype=dtype, algorithm=algorithm),
        )
        return lax.bitcast_convert_type(lax.reshape(words, (2, 2)), np.uint64), bits
    is_wide = np.dtype(dtype).itemsize == 8
    if algorithm != lax.RandomAlgorithm.RNG_THREE_FRY:
        words, used = _philox_words(philox, key, (*shape, 2) if is_wide else tuple(shape))
        bits = lax.bitcast_convert_type(words, np.uint64) if is_wide else words
    elif is_wide:
        counters = _advanced(key[2:], _counters(np.uint32(0), shape))
        low, high = threefry2x32_p.bind(*jnp.broadcast_arrays(key[0], key[1], *counters))
        bits = lax.bitcast_convert_type(jnp.stack([low, high], -1), np.uint64)
        used = math.prod(shape)
    else:
        bits, used = _threefry_words(key, tuple(shape))
    counter = _advanced(key[2:], jnp.full((), used, np.uint32))
    return jnp.stack([key[0], key[1], *counter]), lax.convert_element_type(bits, dtype)


@decomposition("rng_bit_generator", target=TFLITE)
@decomposition("rng_bit_generator", target=TFJS)
def rng_bit_generator_by_loop(key, **params):
    return rng_bit_generator_uint32(key, philox=philox4x32_by_loop, **params)


def _advanced(words, steps):
    """The words of a counter, the lowest first, `steps` later."""
    later, carry = [], steps
    for word in words:
        later.append(word + carry)
        carry = (later[-1] < carry).astype(np.uint32)
    return later


def _philox_words(philox, key, shape):
    """The key is the high half of the counter, too, into which its low half overflows."""
    count = -(-math.prod(shape) // 4)
    counters = _advanced((key[2], key[3], key[0], key[1]), lax.iota(np.uint32, count))
    words = philox(key[0], key[1], *counters)
    flat = lax.reshape(jnp.stack(words, -1), (4 * count,))
    # A slice of symbolic size would have to be proven to fit.
    first = flat.at[lax.iota(np.int32, math.prod(shape))].get(mode="promise_in_bounds")
    return lax.reshape(first, shape), count


def _threefry_words(key, shape):
    padded, halved, axis = _halved(shape)
    count = math.prod(halved)
    counters = _advanced(key[2:], lax.reshape(lax.iota(np.uint32, count), halved))
    pair = threefry2x32_p.bind(*jnp.broadcast_arrays(key[0], key[1], *counters))
    return _joined(pair, shape, padded, axis), count


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


def _halved(shape):
    """The first even dimension, or else the largest, is split into pairs; each counter makes one.

    Returns the shape of the words that are made, that of the counters, and the dimension.
    """
    padded = list(shape) or [2]
    axis = next((i for i, d in enumerate(padded) if d % 2 == 0), int(np.argmax(padded)))
    padded[axis] += padded[axis] % 2
    return padded, [d // 2 if i == axis else d for i, d in enumerate(padded)], axis


def _joined(pair, shape, padded, axis):
    """Pairs of words in the order of the shape; what was padded is left out."""
    bits = lax.reshape(jnp.stack(pair, axis + 1), padded)
    return bits[tuple(slice(d) for d in shape)] if shape else bits[0]


def _symbolic_threefry_bits(state, *, shape):
    """32 random bits for each element, each half of what its counter makes.

    Which dimension is split is known only when the program runs.
    """
    sizes = jnp.stack([jnp.asarray(dim, np.int64) for dim in shape])
    is_even = sizes % 2 == 0
    axis = jnp.where(jnp.any(is_even), jnp.argmax(is_even), jnp.argmax(sizes))
    steps = jnp.where(jnp.arange(len(shape)) == axis, 2, 1)
    halved = (sizes + steps - 1) // steps
    counter, half = jnp.zeros(shape, np.int64), jnp.zeros(shape, np.int64)
    for i in range(len(shape)):
        position = lax.broadcasted_iota(np.int64, shape, i)
        counter = counter * halved[i] + position // steps[i]
        half = half + position % steps[i]
    counter = state[1] + counter.astype(np.uint64)
    first, second = threefry2x32_p.bind(*_low_and_high(state[0]), *_low_and_high(counter))
    return jnp.where(half == 0, first, second), jnp.prod(halved).astype(np.uint64)


def _counters(first, shape):
    return first + lax.reshape(lax.iota(first.dtype, math.prod(shape)), shape)


def _low_and_high(x):
    """The low and the high 32 bits of uint64."""
    high = lax.shift_right_logical(x, np.uint64(32))
    return x.astype(np.uint32), high.astype(np.uint32)
