"""A process that converts many different programs, and measures what is left of them.

`python -m tests.lives N` prints a line of JSON after half of N programs, and one after all.
"""

import collections
import gc
import itertools
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import convert

# What conversions are made of, by the names of types. (JAX keeps a limited number of jaxprs.)
COUNTED = ("FuncGraph", "_Trace", "Vjp", "Operation")

# Programs differ in more shapes than these, but not for ever: what is kept per shape is bounded.
SHAPES = 10

MODES = tuple(itertools.product(("eager", "graph"), (False, True)))


def _program(i):
    """A JAX function of a matrix of three columns, unlike all others; it closes over a megabyte."""
    number = np.float32(i)
    table = np.full((1 << 18,), number)

    @jax.jit
    def long(x):
        for step in range(8):
            x = jnp.sin(x) * step + jnp.cos(x * number)
        return x

    def step(carry, y):
        carry = carry * 0.5 + y + number
        return carry, carry * y

    kinds = (
        lambda x: jnp.tanh(x * number).sum() + jnp.asarray(table).sum(),
        lambda x: long(long(x)).sum(),
        lambda x: lax.scan(step, x[0], x)[1].sum() + jnp.asarray(table)[0],
        lambda x: lax.cond(
            x.sum() > number, lambda x: x * jnp.asarray(table)[:3], lambda x: -x, x
        ).sum(),
        lambda x: (x * jax.random.normal(jax.random.key(i), x.shape)).sum(),
        lambda x: jnp.sort(x, axis=0)[0].sum() * number,
        lambda x: jax.nn.logsumexp(x * number) + lax.erf_inv(x / 4).sum(),
    )
    return kinds[i % len(kinds)]


def _run(i):
    """Converts a program and runs it."""
    mode, is_differentiated = MODES[i // 7 % len(MODES)]
    shapes = "(b, _)" if i % 11 == 0 and i % 7 < 2 else None
    converted = convert(_program(i), polymorphic_shapes=shapes)

    def fun(x):
        if not is_differentiated:
            return converted(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    if mode == "graph":
        fun = tf.function(fun, autograph=False)
    fun(tf.ones([2 + i % SHAPES, 3]))


def _measure():
    gc.collect()
    counts = collections.Counter(type(x).__name__ for x in gc.get_objects())
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    resident = pages * os.sysconf("SC_PAGE_SIZE")
    return {"resident": resident, **{name: counts[name] for name in COUNTED}}


def main():
    """Converts as many programs as the first argument says."""
    total = int(sys.argv[1])
    for i in range(total):
        _run(i)
        if i + 1 in (total // 2, total):
            print(json.dumps({"programs": i + 1, **_measure()}), flush=True)


if __name__ == "__main__":
    main()
