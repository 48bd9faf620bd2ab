"""Control flow: primitives that choose a jaxpr or run it repeatedly."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arguments import ALL, FLOAT, INTEGER, full_range, name, random
from harnesses.axes import axes, axes_of, every_axis, symbolic
from harnesses.compare import close
from harnesses.harness import Harness, harnesses

_X = random((4,), np.float32)


def _swap(x):
    return jnp.concatenate([x[1:], x[:1]])


@harnesses
@symbolic(every_axis)
def cond():
    def rotate(p, x, y):
        return lax.cond(p, lambda x, y: (y, _swap(x)), lambda x, y: (_swap(x), y), x, y)

    for dtype in ALL:
        for p in (False, True) if dtype == np.float32 else (True,):
            x = random((3,), dtype)
            args = (np.bool_(p), x, x)
            yield Harness("cond", f"predicate={p}_{name(dtype)}", rotate, args, dtype=dtype)

    branches = [lambda x: x, lambda x: x * 2, lambda x: x + 3, jnp.flip]
    for index in (-5, 0, 1, 2, 3, 4, np.iinfo(np.int32).max, np.iinfo(np.int32).min):
        for count in (2, 4):
            fun = functools.partial(lax.switch, branches=branches[:count])
            fun = lambda i, x, fun=fun: fun(i, operand=x)  # noqa: E731
            case = f"index={index}_branches={count}"
            args = (np.int32(index), random((3,), np.int32))
            yield Harness("cond", case, fun, args, dtype=np.int32)
        known = lambda x, i=index: lax.switch(np.int32(i), branches, x)  # noqa: E731
        yield Harness("cond", f"known_index={index}", known, (random((3,), np.int32),))
    p, table = np.bool_(True), np.arange(4, dtype=np.float32)
    cases = {
        "closure": lambda p, x: lax.cond(p, lambda: x * 2, lambda: x + table),
        "no_operands": lambda p, x: (lax.cond(p, lambda: 1.0, lambda: 2.0), x),
        "constant_results": lambda p, x: lax.cond(p, lambda: table, lambda: table + 1) + x,
        "nested": lambda p, x: lax.cond(
            p, lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), lambda x: x, x
        ),
        "loop_inside": lambda p, x: lax.cond(
            p, lambda x: lax.fori_loop(0, 5, lambda i, x: x * i - x, x), lambda x: x, x
        ),
        "grad": lambda p, x: jax.grad(
            lambda x: lax.cond(p, lambda x: jnp.sin(x).sum(), lambda x: x.sum(), x)
        )(x),
        "jvp": lambda p, x: jax.jvp(lambda x: lax.cond(p, jnp.sin, jnp.cos, x), (x,), (x,)),
        "vmap_of_predicate": lambda p, x: jax.vmap(lambda y: lax.cond(y > 0, jnp.sin, jnp.cos, y))(
            x
        ),
        "vmap_of_operand": lambda p, x: jax.vmap(lambda y: lax.cond(p, jnp.sin, jnp.cos, y))(x),
        "same_operand_twice": lambda p, x: lax.cond(p, lambda x, y: x - y, jnp.add, x, x),
        "of_a_sum": lambda p, x: lax.cond(x.sum() > 0, jnp.negative, jnp.abs, x),
        "scalar": lambda p, x: lax.cond(p, jnp.negative, jnp.abs, x[0]),
        "empty": lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x, x[:0]),
    }
    for case, fun in cases.items():
        for p in (False, True):
            yield Harness(
                "cond",
                f"{case}_{p}",
                fun,
                (np.bool_(p), _X),
                close(atol=1e-6),
                np.float32,
                symbolic=axes() if case in ("closure", "constant_results") else every_axis,
            )


@harnesses
@symbolic(every_axis)
def while_():
    for dtype in ALL:

        def fun(n, x, y):
            return lax.while_loop(
                lambda c: c[0] < n, lambda c: (c[0] + 1, _swap(c[2]), c[1]), (0, x, y)
            )

        args = (np.int64(3), random((3,), dtype), random((3,), dtype))
        yield Harness("while", f"carry_{name(dtype)}", fun, args, dtype=dtype)
    for dtype in INTEGER + FLOAT:

        def double(x):
            return lax.while_loop(lambda x: x < 60, lambda x: x + x, x)

        yield Harness("while", f"until_{name(dtype)}", double, (np.ones((), dtype),))
    table = np.arange(5, dtype=np.int32)
    n = np.int32(4)
    x = full_range((5,), np.int32)
    cases = {
        "fori": lambda n, x: lax.fori_loop(0, n, lambda i, x: x * i + table, x),
        "fori_lower": lambda n, x: lax.fori_loop(n - 2, n, lambda i, x: x + i, x),
        "fori_empty_range": lambda n, x: lax.fori_loop(n, 0, lambda i, x: x + 1, x),
        "never": lambda n, x: lax.while_loop(lambda x: x[0] != x[0], lambda x: x + 1, x),
        "closure_in_condition": lambda n, x: lax.while_loop(
            lambda i: jnp.asarray(table)[i] < n, lambda i: i + 1, np.int32(0)
        ),
        "closure_in_body": lambda n, x: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + x), (np.int32(0), x)
        ),
        "unchanged_carry": lambda n, x: lax.while_loop(
            lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1], c[2] * c[0]), (np.int32(0), n, x)
        ),
        "unchanged_known_carry": lambda n, x: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], c[2] + c[1]), (np.int32(0), table, x)
        ),
        "swapped_carry": lambda n, x: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[2], c[1]), (np.int32(0), x, table)
        ),
        "known_successor": lambda n, x: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, table), (np.int32(0), x)
        ),
        "nested": lambda n, x: lax.fori_loop(
            0, n, lambda i, x: lax.fori_loop(0, i, lambda j, y: y * j + i, x), x
        ),
        "nested_with_cond": lambda n, x: lax.fori_loop(
            0, n, lambda i, x: lax.cond(i % 2 == 0, lambda x: x + i, jnp.flip, x), x
        ),
        "vmap_of_trip_count": lambda n, x: jax.vmap(
            lambda y: lax.while_loop(lambda z: z < 100, lambda z: z + 7, y % 100)
        )(x),
        "vmap_of_carry": lambda n, x: jax.vmap(
            lambda y: lax.fori_loop(0, n, lambda i, z: z * 3 + i, y)
        )(x),
        "vmap_of_both": lambda n, x: jax.vmap(
            lambda m, y: lax.while_loop(
                lambda c: c[0] < m, lambda c: (c[0] + 1, c[1] * 3), (np.int32(0), y)
            )
        )(table, x),
        "empty_carry_array": lambda n, x: lax.fori_loop(0, n, lambda i, x: x + i, x[:0]),
        "two_loops": lambda n, x: lax.fori_loop(
            0, n, lambda i, y: y - i, lax.fori_loop(0, n, lambda i, y: y + i * i, x)
        ),
        "two_results_unused": lambda n, x: lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (np.int32(0), x)
        )[0],
        "known": lambda n, x: x + lax.while_loop(lambda i: i < 9, lambda i: i + 2, np.int32(0)),
        "scatter": lambda n, x: lax.fori_loop(0, n, lambda i, x: x.at[i].set(x[i + 1]), x),
    }
    # With a constant of the size of x.
    fixed = ("fori", "unchanged_known_carry", "swapped_carry", "known_successor", "vmap_of_both")
    for case, fun in cases.items():
        axes_of_x = axes() if case in fixed else every_axis
        yield Harness("while", case, fun, (n, x), symbolic=axes_of_x)
    newton = lambda x: lax.while_loop(  # noqa: E731
        lambda y: jnp.max(jnp.abs(y * y - x)) > 1e-3, lambda y: (y + x / y) / 2, x
    )
    yield Harness("while", "newton", newton, (random((4,), np.float32, 1, 9),), close())
    jvp = lambda x: jax.jvp(  # noqa: E731
        lambda x: lax.fori_loop(0, x.astype(int)[0], lambda i, x: jnp.sin(x), x), (x,), (x,)
    )
    yield Harness("while", "jvp", jvp, (random((4,), np.float32, 1, 9),), close(atol=1e-6))


@harnesses
@symbolic(every_axis)
def scan():
    for dtype in ALL:
        for reverse in (False, True) if dtype == np.float32 else (False,):
            # Long enough to be lowered to a loop. The length is prime, so each step of the loop
            # takes one element.
            fun = functools.partial(
                lax.scan, lambda c, x: (x, (_swap(c), x[0])), reverse=reverse, length=23
            )
            args = (random((3,), dtype), random((23, 3), dtype))
            yield Harness(
                "scan", f"{name(dtype)}_reverse={reverse}", fun, args, symbolic=("c", "_, c")
            )
    x = full_range((41, 2), np.int32)
    c = full_range((2,), np.int32)

    def body(c, x):
        return c * 3 + x, c - x

    for length in (0, 1, 2, 41):
        for reverse in (False, True):
            fun = functools.partial(lax.scan, body, reverse=reverse)
            args = (c, full_range((length, 2), np.int32))
            yield Harness("scan", f"{length=}_{reverse=}", fun, args)
            fun = functools.partial(lax.scan, body, reverse=reverse, unroll=3)
            yield Harness("scan", f"{length=}_{reverse=}_unroll=3", fun, args)
    for unroll in (2, 41, 50, True):
        fun = functools.partial(lax.scan, body, unroll=unroll)
        yield Harness("scan", f"{unroll=}", fun, (c, x))
    table = np.arange(2, dtype=np.int32)
    cases = {
        "no_carry": lambda c, x: lax.scan(lambda _, x: ((), x * 2), (), x),
        "no_ys": lambda c, x: lax.scan(lambda c, x: (c + x, ()), c, x),
        "no_xs": lambda c, x: lax.scan(lambda c, _: (c * 3, c), c, None, length=30),
        "no_xs_and_no_ys": lambda c, x: lax.scan(lambda c, _: (c * 3, ()), c, None, length=30)[0],
        "several": lambda c, x: lax.scan(
            lambda c, x: ((c[1] + x[0], c[0] * x[1]), (x, c[0][0])), (c, c + 1), (x, x[:, 1])
        ),
        "closure": lambda c, x: lax.scan(lambda d, y: (d * y + c, d + x[3]), c, x),
        "closure_over_constant": lambda c, x: lax.scan(lambda c, y: (c + table, y * table), c, x),
        "known_xs": lambda c, x: lax.scan(
            lambda c, y: (c * y, c), c, np.arange(40, dtype=np.int32)
        ),
        "known_init": lambda c, x: lax.scan(body, table, x),
        "known_ys": lambda c, x: lax.scan(lambda c, y: (c + y, table), c, x),
        "unchanged_carry": lambda c, x: lax.scan(
            lambda c, y: ((c[0] * y, c[1]), c[1] + y), (c, c + 1), x
        ),
        "only_unchanged_carry": lambda c, x: lax.scan(lambda c, y: (c, c + y), c, x),
        "carry_is_ys": lambda c, x: lax.scan(lambda c, y: (c + y, c + y), c, x),
        "scalars": lambda c, x: lax.scan(lambda c, y: (c + y, c * y), c[0], x[:, 0]),
        "empty_elements": lambda c, x: lax.scan(lambda c, y: (c + 1, y), c, x[:, :0]),
        "nested": lambda c, x: lax.scan(
            lambda c, y: lax.scan(lambda d, z: (d * 5 + y, d + z), c, x), c, x[:20]
        ),
        "in_while": lambda c, x: lax.fori_loop(
            0, c[0] % 4, lambda i, d: lax.scan(body, d, x)[0], c
        ),
        "cond_inside": lambda c, x: lax.scan(
            lambda c, y: (lax.cond(y[0] > 0, jnp.flip, lambda c: c + y, c), c), c, x
        ),
        "while_inside": lambda c, x: lax.scan(
            lambda c, y: (lax.while_loop(lambda d: d[0] % 2 == 0, lambda d: d // 2 + 1, c + y), y),
            c,
            x,
        ),
        "jit_inside": lambda c, x: lax.scan(jax.jit(body), c, x),
        "map": lambda c, x: lax.map(lambda y: y * 2 + c, x),
        "map_in_batches": lambda c, x: lax.map(lambda y: y * 2 + c, x, batch_size=7),
        "vmap": lambda c, x: jax.vmap(lambda c, x: lax.scan(body, c, x), (0, 1))(c, x),
        "vmap_of_carry": lambda c, x: jax.vmap(lambda c: lax.scan(body, c, x[:, 0]))(c),
        "bool_carry": lambda c, x: lax.scan(lambda p, y: (p ^ (y > 0), p), c > 0, x),
    }
    for case, fun in cases.items():
        axes_of_x = (
            axes_of((), (0,)) if case in ("closure_over_constant", "known_init") else every_axis
        )
        yield Harness("scan", case, fun, (c, x), symbolic=axes_of_x)

    def rnn(w, h, x):
        def step(h, x):
            h = jnp.tanh(x @ w + h)
            return h, h

        return lax.scan(step, h, x)

    args = (
        random((3, 3), np.float32, -1, 1),
        random((2, 3), np.float32),
        random((30, 2, 3), np.float32),
    )
    loss = lambda *args: (rnn(*args)[1] ** 2).sum()  # noqa: E731
    # The tolerances allow for sums of squares over 30 steps.
    yield Harness("scan", "rnn", rnn, args, close(atol=1e-5))
    yield Harness("scan", "rnn_grad", jax.grad(loss, (0, 1, 2)), args, close(rtol=1e-4, atol=1e-4))
    jvp = lambda *args: jax.jvp(rnn, args, args)  # noqa: E731
    yield Harness("scan", "rnn_jvp", jvp, args, close(rtol=1e-4, atol=1e-4))
    split = lambda w, h, x: jax.grad(  # noqa: E731
        lambda w: (
            lax.scan(lambda h, x: (jnp.tanh(x @ w + h),) * 2, h, x, _split_transpose=True)[1] ** 2
        ).sum()
    )(w)
    yield Harness("scan", "split_transpose", split, args, close(rtol=1e-4, atol=1e-4))


@harnesses
@symbolic(every_axis)
def platform_index():
    fun = lambda x: lax.platform_dependent(x, cpu=jnp.flip, default=jnp.sin)  # noqa: E731
    yield Harness("platform_index", "cpu", fun, (np.arange(3, dtype=np.float32),))
