"""PRNG keys and random bits."""

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jax.extend.random import threefry2x32_p

from lowering import avals, jax_compat, registry
from lowering.arrays import half_arithmetic as arithmetic
from lowering.arrays import halves
from lowering.arrays.halves import HALF, WORD
from lowering.formats import words
from lowering.narrow_formats import SHORT
from lowering.ops import cast, constant, dtypes, emit
from lowering.passes import flattening
from lowering.registry import Trait, decomposition, on_promoted, on_words, rule
from lowering.rules.halves import register
from lowering.targets import CONSUMER, TFJS, TFLITE
from lowering.tensors import threefry


@on_words("random_wrap", "random_unwrap", "random_clone")
def random_wrap(words, **_):
    return words


@rule("random_clone", held=True, traits=Trait.SELECTS)
def random_clone(ctx, words, **_):
    """The same words; passes have put arrays of words in the place of keys."""
    return words


for _fun in (
    jax_compat.random_seed,
    jax_compat.random_split,
    jax_compat.random_fold_in,
    jax_compat.random_bits,
):
    on_words(_fun.__name__, traits=Trait.LONG)(_fun)


@rule("random", held=True, traits=Trait.LONG)
def random(ctx, *operands, name, storage=None, **params):
    """What a primitive does with keys, on their words, as a function of the graph."""
    fun = registry.facts(name).on_words
    if storage is not None:
        fun, params = _stored, {"name": name, "storage": storage, **params}
    return ctx.lower(fun, *operands, avals=ctx.in_avals, as_function=True, **params)


def _stored(*operands, name, storage, **params):
    fun: Any = registry.facts(name).on_words
    return fun(*operands, **params).astype(storage)


@rule("random_of_halves", keep_constants=True, held=True, traits=Trait.LONG)
def random_of_halves(ctx, *operands, **params):
    return ctx.lower(_random_of_halves, *operands, avals=ctx.in_avals, as_function=True, **params)


def _random_of_halves(*operands, words, name, storage=None, **params):
    """The same of halves of words, which it returns, too."""
    rest = iter(operands)
    whole = [halves.join(next(rest), next(rest)) if is_word else next(rest) for is_word in words]
    fun: Any = registry.facts(name).on_words
    found = fun(*whole, **params)
    found = found if storage is None else found.astype(storage)
    return halves.apart(found) if found.dtype == WORD else [found]


@on_promoted("random", "random_of_halves", dtypes=SHORT)
def random_short(*operands, primitive, dtypes, storages, **params):
    """Random bits are in the range of their dtype; a seed may be short, too."""
    storage = storages[0] if len(storages) == 1 else None
    return primitive.bind(*operands, storage=storage, **params)


@rule("threefry2x32", traits=Trait.ELEMENTWISE | Trait.LONG)
def threefry2x32(ctx, *operands):
    size = math.prod(ctx.out_avals[0].shape)
    is_large = not avals.is_at_most(size, flattening.SMALL)
    return threefry.threefry2x32(ctx, *operands, is_large=is_large)


@decomposition("threefry2x32", target=CONSUMER)
def threefry2x32_consumer(key0, key1, x0, x1):
    """Op by op, which needs none but sums, products, shifts and the exclusive or of words."""
    schedule = [key0, key1, key0 ^ key1 ^ np.uint32(threefry.PARITY)]
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for i in range(5):
        for distance in threefry.DISTANCES[i % 2]:
            x0, x1 = _mix(x0, x1, int(distance))
        x0 = x0 + schedule[(i + 1) % 3]
        x1 = x1 + (schedule[(i + 2) % 3] + np.uint32(i + 1))
    return x0, x1


def threefry2x32_halves(key0, key1, x0, x1):
    """The same of halves, with fewer ops: it is most of what a random number costs."""
    parity = arithmetic.known(threefry.PARITY)
    schedule = [key0, key1, functools.reduce(_xor_halves, (key0, key1, parity))]
    terms, x1 = [x0, key0], arithmetic.add(x1, key1)
    for i in range(5):
        for distance in threefry.DISTANCES[i % 2]:
            total = arithmetic.add(*terms, x1)
            terms, x1 = [total], _xor_halves(arithmetic.rotate_left(x1, int(distance)), total)
        terms.append(schedule[(i + 1) % 3])
        x1 = arithmetic.add(x1, schedule[(i + 2) % 3], arithmetic.known(i + 1))
    return *arithmetic.add(*terms), *x1


_xor_halves = functools.partial(arithmetic.bitwise, "xor")
register({"threefry2x32": threefry2x32_halves}, dtypes=(HALF,) * 4, traits=Trait.LONG)


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
    """The halves of the 64-bit product of uint32s."""
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


@rule("rng_bit_generator", traits=Trait.PER_DEVICE | Trait.LONG)
def rng_bit_generator(ctx, key, *, shape, dtype, algorithm, **_):
    """The bits that XLA makes on the CPU, where Philox is the default."""
    state = key if key.dtype == tf.uint64 else tf.bitcast(tf.reshape(key, [2, 2]), tf.uint64)
    wide = np.dtype(np.uint64 if np.dtype(dtype).itemsize == 8 else np.uint32)
    if algorithm == lax.RandomAlgorithm.RNG_THREE_FRY:
        bits, used = ctx.lower(_threefry_bits, state, shape=tuple(shape), dtype=wide)
    else:
        bits, used = _philox_bits(ctx, state, shape, wide)
    state = state + tf.stack([tf.zeros_like(used), used])
    new_key = state if key.dtype == tf.uint64 else tf.reshape(tf.bitcast(state, tf.uint32), [4])
    return new_key, cast(bits, dtypes.to_tf(dtype))


@decomposition("rng_bit_generator", target=CONSUMER)
def rng_bit_generator_words(key, *, philox=philox4x32, shape, dtype, algorithm, **_):
    """The same of words alone: `key` is the key and the counter, each as its low and high half."""
    if key.dtype == np.uint64:
        words, bits = rng_bit_generator_words(
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
    return rng_bit_generator_words(key, philox=philox4x32_by_loop, **params)


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


def _threefry_bits(state, *, shape, dtype):
    """Random bits, and by how much the counter advances."""
    if dtype != np.uint64 and not avals.is_static(shape):
        return _symbolic_threefry_bits(state, shape)
    key_low, key_high = _halves(state[0])
    if dtype == np.uint64:
        low, high = threefry2x32_p.bind(key_low, key_high, *_halves(_counters(state[1], shape)))
        joined = low.astype(np.uint64) | lax.shift_left(high.astype(np.uint64), np.uint64(32))
        return joined, jnp.full((), math.prod(shape), np.uint64)
    padded, halved, axis = _halved(shape)
    pair = threefry2x32_p.bind(key_low, key_high, *_halves(_counters(state[1], halved)))
    return _joined(pair, shape, padded, axis), jnp.full((), math.prod(halved), np.uint64)


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


def _symbolic_threefry_bits(state, shape):
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
    first, second = threefry2x32_p.bind(*_halves(state[0]), *_halves(counter))
    return jnp.where(half == 0, first, second), jnp.prod(halved).astype(np.uint64)


def _counters(first, shape):
    return first + lax.reshape(lax.iota(first.dtype, math.prod(shape)), shape)


def _halves(x):
    """The low and the high half of uint64s."""
    high = lax.shift_right_logical(x, np.uint64(32))
    return x.astype(np.uint32), high.astype(np.uint32)


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


@rule("rng_uniform", target=CONSUMER, dtypes=words.WORDS)
def rng_uniform_words(ctx, low, high, **_):
    return words.run_on_order(ctx, low, high)[0]


@decomposition("rng_uniform", target=TFJS, dtypes=words.WORDS)
def rng_uniform_of_halves(low, high, *, shape):
    """Of the int32 in the order of the words."""
    least = np.int32(np.iinfo(np.int32).min)
    limits = [lax.bitcast_convert_type(x, np.int32) + least for x in (low, high)]
    found = lax.rng_uniform(limits[0], limits[1], shape)
    return lax.bitcast_convert_type(found + least, np.uint32)


@rule("rng_uniform")
def rng_uniform(ctx, low, high, *, shape):
    """The numbers are not XLA's, because the state of its generator is not specified."""
    if ctx.target.is_consumer:
        return _uniform_for_consumer(ctx, low, high, shape)
    wide = tf.float64 if low.dtype.is_floating else tf.int64
    bounds = cast(low, wide), cast(high, wide)
    return cast(tf.random.uniform(ctx.shape(shape), *bounds, dtype=wide), low.dtype)
