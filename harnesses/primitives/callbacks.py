"""Callbacks: primitives that call Python functions while the program runs."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from harnesses.arguments import ALL, name, random
from harnesses.axes import axes, every_axis, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(every_axis)
def pure_callback():
    def reverse(x):
        return jax.pure_callback(lambda x: np.asarray(x)[::-1], x, x, vmap_method="sequential")

    for dtype in ALL:
        yield Harness("pure_callback", name(dtype), reverse, (random((4,), dtype),))
    x = random((4, 3), np.float32)
    yield Harness("pure_callback", "vmap", jax.vmap(reverse), (x,))
    yield Harness("pure_callback", "scan", lambda x: lax.map(reverse, x), (x,))
    two = lambda x: jax.pure_callback(lambda x: (x + np.int32(1), x.max()), (x, x[0, 0]), x)  # noqa: E731
    yield Harness("pure_callback", "two_results", two, (random((4, 3), np.int32),))
    key = lambda words: jax.pure_callback(  # noqa: E731
        lambda key: np.asarray(jax.random.key_data(key)) + np.uint32(1),
        words,
        jax.random.wrap_key_data(words),
    )
    yield Harness("pure_callback", "key", key, (np.array([1, 2], np.uint32),), symbolic=axes())


@harnesses
@symbolic(every_axis)
def effects():
    x = random((4,), np.float32)

    def counted(x):
        return io_callback(lambda x: np.asarray(x) * 2, x, x, ordered=True)

    def observed(x):
        jax.debug.callback(lambda x: None, x)
        return x

    def printed(x):
        jax.debug.print("{}", x[:0])
        return x

    for primitive, fun in {
        "io_callback": counted,
        "debug_callback": observed,
        "debug_print": printed,
    }.items():
        yield Harness(primitive, "plain", fun, (x,))
        loop = lambda x, fun=fun: lax.fori_loop(0, 3, lambda i, y: fun(y) + i, x)  # noqa: E731
        yield Harness(primitive, "loop", loop, (x,))
        branch = lambda x, fun=fun: lax.cond(x[0] > 0, fun, jnp.negative, x)  # noqa: E731
        yield Harness(primitive, "branch", branch, (x,))
