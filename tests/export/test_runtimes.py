"""What the runtimes of consumers compute: classes of programs that converters get wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.boundary.models import as_logical
from lowering.export import runtimes
from lowering.export.entries import entry
from lowering.targets import CONSUMERS, TARGETS

X = np.float32([-np.inf, -2.5, -1, 0, 0.5, 3, np.inf])
I = np.int32([-7, -1, 0, 3, 2**31 - 1, -(2**31)])  # noqa: E741
DIVISORS = np.int32([3, -5, 1, -1, 65537, 2**31 - 1, -(2**31), 10, -10])
UNSIGNED = np.uint32([12, 3456])
SPD = np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 2]])
PROGRAMS = {
    "selected infinities": (lambda x: jnp.where(x > 0, x, x - x), X),
    "comparisons with infinity": (lambda x: (x == jnp.inf, x <= jnp.inf, jnp.isinf(x)), X),
    "selected booleans": (lambda x: jnp.where(x > 0, x < 2, x < -2), X),
    "quotients": (lambda x: (x // 3, x % 3, lax.div(x, jnp.int32(-4)), lax.rem(x, 5 + 0 * x)), I),
    "products that overflow": (lambda x: (x * x[::-1], x * 12345, x.prod(), x.sum()), I),
    "bits": (lambda x: (x & 12, x | 3, x ^ -5, ~x, x >> 3, x << 5, lax.population_count(x)), I),
    "bits of floats": (lambda x: lax.bitcast_convert_type(x[1:4], np.int32), X),
    "uint32": (lambda x: (x // 7, x > 13, x << 30, x.astype("float32")), UNSIGNED),
    "random bits": (lambda x: jax.random.bits(jax.random.wrap_key_data(x), (5,)), UNSIGNED),
    "random numbers": (lambda x: jax.random.normal(jax.random.wrap_key_data(x), (5,)), UNSIGNED),
    "random integers": (lambda x: jax.random.randint(jax.random.key(x[0]), (5,), 0, 9), UNSIGNED),
    "dropped updates": (lambda x: x.at[jnp.array([1, 9, 1])].add(1.5, mode="drop"), X),
    "repeated updates": (lambda x: x.at[jnp.array([1, 1, 2, 1])].set(jnp.arange(4.0)), X),
    "largest updates": (lambda x: x.at[jnp.array([1, 1, 2, 1])].max(jnp.arange(4.0)), X),
    "products of updates": (lambda x: x.at[jnp.array([1, 1, 2])].mul(3.0), X),
    "blocks": (lambda x: lax.dynamic_update_slice(x, x[:2], (x[3].astype("int32") + 4,)), X),
    "cumulative": (lambda x: (jnp.cumsum(x), jnp.cumprod(x), lax.cummax(x)), X[1:-1]),
    "nothing": (lambda x: (x[:0], x + 1, x[:0].sum()), X),
    "no arguments of use": (lambda x: jnp.arange(5) * 2, X),
    "vector times matrix": (lambda x: x[0] @ x, SPD),
    "integers in matrices": (lambda x: jnp.outer(x, x)[:, :3] @ jnp.ones((3, 2), "int32"), I % 9),
    "linear algebra": (
        lambda x: (jnp.linalg.cholesky(x), jnp.linalg.solve(x, x[0]), jnp.linalg.eigvalsh(x)),
        SPD,
    ),
    "spectra": (lambda x: (jnp.abs(jnp.fft.fft(x)), jnp.fft.rfft(x)), SPD),
    "many branches": (lambda x: lax.switch(x[3], [lambda y, k=k: y * k for k in range(5)], x), I),
    "loops in loops": (
        lambda x: lax.scan(
            lambda c, e: (c + lax.scan(lambda a, b: (a + b, a), c, e)[1].sum(), e), 0.0, x
        ),
        SPD,
    ),
    "the second result of an op, in a loop": (
        lambda x: lax.while_loop(
            lambda s: s[0] < 3,
            lambda s: (s[0] + 1, -s[1], lax.top_k(s[1], 2)[1]),
            (0, x, jnp.zeros((3, 2), "int32")),
        ),
        SPD,
    ),
    "the second result of an op, in a branch": (
        lambda x: lax.cond(
            x[0, 0] > 0, lambda y: lax.top_k(y, 2)[1], lambda y: lax.top_k(-y, 2)[1], x
        ),
        SPD,
    ),
    "bfloat16": (lambda x: (x.astype("bfloat16") / 3, (x * 7).astype("bfloat16")[1:-1]), X),
    "swapped values": (
        lambda x: lax.while_loop(lambda s: s[2] < 3, lambda s: (s[1], s[0], s[2] + 1), (x, -x, 0)),
        X,
    ),
    "sorted integers": (lambda x: (jnp.sort(x), lax.top_k(x, 3), jnp.argsort(-(x // 2))), I),
    "quotients of large integers": (lambda x: (x[:, None] // DIVISORS, x[:, None] % DIVISORS), I),
    "quotients by numbers": (
        lambda x: tuple(x // n for n in (1, 2, 7, -7, 128, 1 << 16, 1 << 20, 1 << 30)),
        I,
    ),
    "strided": (lambda x: (x[::2], x[1::3], (x > 0)[::2], x[::-2]), I),
    "clipped and padded": (
        lambda x: (jnp.clip(x, -5, 70000), jnp.pad(x, 2, constant_values=123456789)),
        I,
    ),
    "booleans": (
        lambda x: (jnp.where(x > 0, x < 2, x < -2)[::-1], x.astype(bool), (x * 2).astype(bool)),
        X,
    ),
    "small numbers": (
        lambda x: (jnp.sin(x * 1e-30) * 1e30, jnp.sign(x * 1e-30), jnp.log1p(x * 1e-30) * 1e30),
        X[1:-1],
    ),
    "remainders": (lambda x: (lax.rem(x, 0 * x + 1.5), jnp.fmod(x, -1e9)), X[1:-1]),
    "elements of batches": (
        lambda x: (
            jnp.take_along_axis(x, jnp.argsort(-x, axis=1), axis=1),
            jnp.sort(x, axis=0),
            lax.top_k(x, 2),
            jax.vmap(lambda row, i: row[i])(x, jnp.array([2, 0, 1])),
        ),
        SPD,
    ),
    "convolutions that leave a rest": (
        lambda x: lax.conv_general_dilated(
            jnp.pad(x, (2, 1))[None, None], jnp.ones((1, 1, 3, 2)), (1, 3), "SAME"
        ),
        SPD,
    ),
    "many axes": (
        lambda x: tuple(
            op(x.reshape((1, 3, 1) * 4), x[0, :3].reshape((1,) * 9 + (3, 1, 1)))
            for op in (jnp.add, jnp.multiply, jnp.subtract, jnp.maximum)
        ),
        np.outer(SPD, SPD)[:, :9].astype(np.float32),
    ),
    "products with known matrices beside many axes": (
        lambda x: [
            (of_rows(rows) @ SPD[:, :2]).reshape(shape)
            for rows in (x.reshape(1, 3, 1, 1, 1, 3, 3), x.reshape(1, 1, 3, 1, 1, 1, 3, 3))
            for of_rows in (lambda r: r, lambda r: jnp.exp(r.reshape(-1, 3)))
            for shape in ((9, 2), (1, 3, 1, 3, 1, 1, 1, 2))
        ],
        np.stack([SPD / 10] * 3).astype(np.float32),
    ),
    "axes": (
        lambda x: jnp.broadcast_to(x, (2, 1, 2, 1, 2, 3, 3)).transpose(6, 0, 2, 4, 1, 3, 5),
        SPD,
    ),
    "loops of one function": (lambda x: _steps(_steps(x)), X[2:5]),
    "rows of narrow numbers": (
        lambda x: tuple(
            jnp.broadcast_to(x.astype(dtype)[jnp.array([2, 0, 9])][:, None], (3, 2)).astype(int)
            for dtype in ("float16", "bfloat16", "uint16", "uint32", "uint8", "int8")
        ),
        np.abs(X[1:-1]),
    ),
    "numbers of eight bits or fewer, from and to what is held in other dtypes": (
        lambda x: [
            x.astype(first).astype(dtype).astype(last)
            for dtype in ("float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float4_e2m1fn", "int4")
            for first, last in (("bfloat16", "uint32"), ("uint32", "bfloat16"), ("int8", "uint8"))
        ],
        np.abs(X[1:-1]),
    ),
    "bits of integers of fewer than eight": (
        lambda x: [
            fun(x.astype(dtype), (x // 2).astype(dtype)).astype(x.dtype)
            for dtype in ("int4", "uint4", "int2", "uint2")
            for fun in (
                *(lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic),
                *(
                    lax.mulhi,
                    lambda x, y: lax.population_count(x),
                    lambda x, y: lax.clz(y),
                    jnp.add,
                ),
            )
        ],
        np.arange(-8, 16, dtype=np.int32),
    ),
    "float8 of fewer bits": (
        lambda x: [
            lax.reduce_precision(x.astype(dtype), 4, 1).astype(x.dtype)
            for dtype in ("float8_e4m3fn", "float8_e5m2")
        ],
        X[1:-1],
    ),
    "arrays of float8 that are large": (
        lambda x: (
            x @ jnp.asarray(np.outer(X[1:4], X[1:-1].repeat(999)), "float8_e5m2").astype(float)
        ),
        SPD,
    ),
    "sorts by keys of several dtypes": (
        lambda x: lax.sort(
            ((x % 3).astype("uint32"), (x % 2).astype("float16"), x.astype("uint8"), x), num_keys=3
        ),
        I,
    ),
    "counters that overflow": (
        lambda x: lax.rng_bit_generator(
            jnp.full(4, x[0] | np.uint32(0xFFFFFFFF)), (9,), algorithm=_PHILOX
        )[1],
        UNSIGNED,
    ),
    "repeated updates of complex numbers": (
        lambda x: [
            getattr(lax.complex(x, -x).at[jnp.array([1, 1, 2])], method)(lax.complex(2.0, x[1]))
            for method in ("add", "multiply", "min", "max", "set")
        ],
        X[1:-1],
    ),
}
_PHILOX = lax.RandomAlgorithm.RNG_PHILOX


@jax.jit
def _steps(x):
    """A loop in a loop, which reads elements of an array outside."""

    def count(e):
        return lax.fori_loop(0, e.astype(int) + 1, lambda i, carry: carry * x[i] + 1, e)

    return lax.map(count, x)


SYMBOLIC = {
    "sorted": lambda x: (jnp.sort(x, axis=1), lax.top_k(x, 2), jnp.argsort(x, axis=1)),
    "strided": lambda x: (x[:, ::2], x[:, 1::2] > 0, (x > 1)[:, ::2], (x * 7).astype(int)[:, ::2]),
    "a loop": lambda x: lax.scan(lambda total, y: (total + y, total), x[:, 0], x.T)[1],
    "largest updates": lambda x: jax.ops.segment_max(x, jnp.argmax(x, axis=1), 5),
    "rows": lambda x: jnp.take_along_axis(x, jnp.argmax(x, axis=1)[:, None], axis=1),
    "transposed matrices": lambda x: (
        x.T.reshape(3, -1, 1).transpose(1, 2, 0),
        jnp.tanh(x.T).reshape(1, 3, -1, 1).transpose(2, 1, 0, 3),
        jnp.einsum("ijk,jl->ilk", jnp.stack([x, -x, x], 1), SPD),
    ),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_batches(name, consumer):
    check(SYMBOLIC[name], SPD, consumer, polymorphic_shapes=["(b, _)"])


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_runtime(name, consumer):
    check(*PROGRAMS[name], consumer)


def check(fun, x, consumer, **options):
    made = entry(fun, (x,), TARGETS[consumer], **options)
    expected = jax.tree_util.tree_leaves(jax.jit(fun)(x))
    found = runtimes.run(consumer, made)
    assert len(found) == (2 if consumer == "tfjs" else 1)
    for results in found.values():
        for output, e, a in zip(made.outputs, expected, results, strict=True):
            a = as_logical(a, made.dtypes[output])
            if jnp.issubdtype(e.dtype, jnp.inexact):
                # What NaN becomes is the consumer's.
                a = np.where(np.isnan(e), e, a)
                np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)
            else:
                np.testing.assert_array_equal(a.astype(e.dtype), e)
