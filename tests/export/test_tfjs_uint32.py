"""uint32 in TF.js, by all of its backends, those with integers of 24 bits among them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

EXTREMES = np.uint32(
    [0, 1, 2, 255, 256, 65535, 65536, 2**24 - 1, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1]
)
KEY = np.uint32([0x9ABCDEF0, 0x12345678])


def _pairs():
    x, y = np.meshgrid(EXTREMES, EXTREMES, indexing="ij")
    return x.ravel(), y.ravel()


def test_binary_operations(check):
    x, y = _pairs()
    rng = np.random.default_rng(0)
    more = rng.integers(2**32, size=(2, 500), dtype=np.uint32)
    more[1] >>= rng.integers(32, size=500, dtype=np.uint32)
    x, y = np.append(x, more[0]), np.append(y, more[1])
    amounts = y % np.uint32(40)

    def fun(x, y, amounts):
        pairs = [lax.add, lax.sub, lax.mul, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor]
        pairs += [lax.max, lax.min, lax.div, lax.rem, lax.eq, lax.ne, lax.lt, lax.le, lax.gt]
        pairs += [lax.ge, lax.mulhi]
        shifts = [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]
        return [f(x, y) for f in pairs] + [f(x, amounts) for f in shifts]

    check(fun, x, y, amounts)


def test_operations_with_known_numbers(check):
    def fun(x):
        results = []
        for number in (0, 1, 0xFF00, 0x7FFFFF, 2**31, 0x9E3779B9):
            y = np.uint32(number)
            results += [x + y, y - x, x - y, x * y, x & y, x | y, x ^ y, x < y, y <= x, x // y]
            results += [x % y, lax.clamp(np.uint32(7), x, y)]
        for distance in (0, 1, 9, 16, 17, 31, 32):
            results += [x << np.uint32(distance), x >> np.uint32(distance)]
        return results

    check(fun, EXTREMES)


def test_unary_operations_and_conversions(check):
    floats = np.float32([0, -0.0, 0.75, -3, 255.9, 65536.5, 2**24 + 2, 2**31, 4e9, 5e9])
    integers = np.int32([0, 1, -1, 127, -128, 65535, -65536, 2**24 - 1, 1 - 2**24])
    shorts = np.uint8(np.arange(8))

    def fun(x, floats, integers, shorts):
        return [
            *(f(x) for f in (lax.neg, lax.bitwise_not, lax.square, lax.sign, lax.population_count)),
            lax.clz(x),
            lax.integer_pow(x, 3),
            *(x.astype(dtype) for dtype in ("float32", "uint8", "int8", "uint16", "int16", "bool")),
            (x >> 8).astype(np.int32),
            lax.bitcast_convert_type(integers, np.uint32),
            lax.bitcast_convert_type(~(x >> 9), np.int32),
            lax.bitcast_convert_type(x, np.uint16),
            lax.bitcast_convert_type(x, np.uint8),
            lax.bitcast_convert_type(shorts.reshape(2, 4), np.uint32),
            lax.bitcast_convert_type(floats, np.uint32),
            lax.bitcast_convert_type(lax.bitcast_convert_type(floats, np.uint32), np.float32),
            *(a.astype(np.uint32) for a in (floats, integers, shorts, integers > 0)),
            lax.iota(np.uint32, 5) * np.uint32(0x9E3779B9),
        ]

    check(fun, EXTREMES, floats, integers, shorts)


def test_bits_of_int32(check):
    """Of int32 all 32 bits count, as far as a backend has them."""
    rng = np.random.default_rng(2)
    integers = np.append(EXTREMES, rng.integers(2**32, size=500, dtype=np.uint32)).view(np.int32)

    def fun(x):
        bits = lax.bitcast_convert_type(x, np.uint32)
        parts = bits >> 16, bits & np.uint32(0xFFFF)
        return [*parts, bits * np.uint32(3), bits < np.uint32(2**31), lax.mulhi(x, x[::-1])]

    check(fun, integers, without=["webgl"])


def test_movement(check):
    x = np.random.default_rng(1).integers(2**32, size=(4, 6), dtype=np.uint32)

    def fun(x, i, j):
        y = x ^ np.uint32(0xDEADBEEF)
        return [
            y.T,
            y.reshape(3, 8)[::-1],
            jnp.concatenate([x, y], 1),
            jnp.stack([x, y]),
            jnp.pad(y, 1, constant_values=np.uint32(2**32 - 5)),
            y[1:3, ::2],
            y[i],
            y[jnp.array([3, 0, 3]), j],
            jnp.take(y, jnp.array([0, 9]), 0, mode="fill", fill_value=np.uint32(2**32 - 3)),
            y[j],
            lax.dynamic_update_slice(x, y[:2, :2], (i, i)),
            x.at[i, 2].set(y[0, 0]),
            x.at[jnp.array([0, 2])].set(y[:2]),
            jnp.where(x < y, x, y),
            jnp.broadcast_to(y[:, :1], (4, 3)) + jnp.uint32(1),
            jnp.sort(y, 1),
            lax.sort((y, x), dimension=0)[1],
            jnp.max(y, 1),
            jnp.min(y),
            jnp.argmax(y, 1),
            lax.top_k(y, 2),
            jnp.sum(y, 0),
            jnp.cumsum(y, 1),
            lax.reduce_xor(y, (0,)),
            lax.optimization_barrier(y),
        ]

    check(fun, x, np.int32(2), np.uint32(3))


def test_control_flow(check):
    def fun(x, n):
        def step(i, carry):
            a, b = carry
            return b, (a * np.uint32(1664525) + np.uint32(1013904223)) ^ (b >> 7)

        looped = lax.fori_loop(0, 5, step, (x, ~x))
        scanned = lax.scan(lambda c, y: (c ^ y, c + y), x[0], looped[1])
        unrolled = lax.scan(lambda c, y: (c * y, c), x[1], x, unroll=True)
        ended = lax.while_loop(lambda c: c[0] > 0x7FFFFFF, lambda c: c >> 1, ~x)
        chosen = lax.cond(n > 0, lambda y: y + x, lambda y: y - x, ~x)
        switched = lax.switch(n, [lambda: x, lambda: x * 3, lambda: x << 20], *())
        mapped = jax.vmap(lambda y: lax.while_loop(lambda z: z > 9, lambda z: z // 7, y))(x)
        called = jax.jit(step)(0, (x, x))
        return looped, scanned, unrolled, ended, chosen, switched, mapped, called

    check(fun, EXTREMES, np.int32(2))


def test_keys(check):
    def fun(data, seed, number):
        key = jax.random.wrap_key_data(data, impl="threefry2x32")
        return [
            jax.random.key_data(jax.random.key(seed)),
            jax.random.PRNGKey(seed),
            jax.random.key_data(jax.random.split(key, 3)),
            jax.random.key_data(jax.random.fold_in(key, number)),
        ]

    check(fun, KEY, np.int32(12345), np.uint32(2**32 - 2))


def test_random_bits(check):
    def fun(data):
        key = jax.random.wrap_key_data(data, impl="threefry2x32")
        return [
            jax.random.bits(key, (7,)),
            jax.random.uniform(key, (5,), minval=-3.0, maxval=2.0),
            jax.random.categorical(key, jnp.arange(12.0).reshape(3, 4)),
            jax.random.normal(key, (4,)),
        ]

    check(fun, KEY, rtol=1e-4)


def test_random_integers(check):
    def fun(data):
        key = jax.random.wrap_key_data(data, impl="threefry2x32")
        return jax.random.randint(key, (50,), -5, 12), jax.random.permutation(key, 40)

    check(fun, KEY)


def test_keys_that_loops_carry(check):
    def fun(data):
        key = jax.random.wrap_key_data(data, impl="threefry2x32")

        def step(key, i):
            drawn = jax.random.bits(key, (2,))
            key = lax.cond(drawn[0] > drawn[1], lambda: key, lambda: jnp.flip(jnp.stack([key]))[0])
            return jax.random.wrap_key_data(drawn), (key, drawn)

        key, (keys, drawn) = lax.scan(step, key, jnp.arange(12))

        def is_low(key):
            return jax.random.key_data(key)[1] < np.uint32(0xE0000000)

        key = lax.while_loop(is_low, lambda key: jax.random.fold_in(key, 1), key)
        return drawn, jax.random.key_data(keys), jax.random.key_data(key)

    check(fun, KEY)


def test_another_generator(check):
    def fun(data):
        return jax.random.bits(jax.random.wrap_key_data(data, impl="rbg"), (5,))

    check(fun, np.append(KEY, KEY[::-1]))


_BINARY = (lax.add, lax.sub, lax.mul, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.rem)
_SHIFTS = (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)


@pytest.mark.parametrize("seed", range(2))
def test_random_programs(check, seed):
    """Compositions of operations, each on results of others or on known numbers."""

    def fun(*operands):
        rng = np.random.default_rng(seed)
        values = list(operands)
        for _ in range(30):
            x, y = (values[i] for i in rng.integers(len(values), size=2))
            kind = rng.integers(6)
            if kind == 0:
                y = jnp.full(x.shape, rng.integers(2**32), np.uint32)
            if kind == 1:
                new = _SHIFTS[rng.integers(3)](x, jnp.full(x.shape, rng.integers(34), np.uint32))
            elif kind == 2:
                new = jnp.where(x < y, ~x, y[::-1])
            else:
                new = _BINARY[rng.integers(len(_BINARY))](x, y)
            values.append(new)
        return values[len(operands) :]

    rng = np.random.default_rng(seed)
    more = rng.integers(2**32, size=EXTREMES.size, dtype=np.uint32)
    check(fun, EXTREMES, rng.permutation(EXTREMES), more)
