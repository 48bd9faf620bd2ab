"""Eight threads convert and run at once; what they share is made once or more, and never wrong."""

import concurrent.futures
import random
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert
from lowering.caches import Bounded
from tests.helpers import MODES, in_mode

THREADS = 8
SIZES = (2, 3)


@jax.jit
def _shared(x):
    """A program that several functions call, which is a function of their graphs."""
    for _ in range(8):
        x = jnp.sin(x) * 0.5 + jnp.cos(x)
    return x


def _argument(size):
    return np.linspace(-1, 1, 3 * size, dtype=np.float32).reshape(size, 3)


FUNCTIONS = {
    "loop": lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c * y), x[0], x)[1].sum(),
    "calls": lambda x: _shared(_shared(x) + 1).sum(),
    "other calls": lambda x: (_shared(x) * _shared(x)).sum(),
    "constants": lambda x: (x * jax.random.normal(jax.random.key(3), x.shape)).sum(),
    "decomposition": lambda x: lax.erf_inv(x * 0.5).sum(),
    "branches": lambda x: lax.cond(x[0, 0] > 0, lambda x: x * 2, jnp.sin, x).sum(),
}


@pytest.fixture(scope="module")
def expected():
    """Value and gradient of each function for each size."""
    return {
        (name, size): jax.jit(jax.value_and_grad(fun))(_argument(size))
        for name, fun in FUNCTIONS.items()
        for size in SIZES
    }


@pytest.fixture(autouse=True)
def switch_often():
    """Lets threads interrupt each other after a few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def at_once(work):
    """The results of `work(i)` in threads that start together."""
    barrier = threading.Barrier(THREADS)

    def start(i):
        barrier.wait()
        return work(i)

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


def _value_and_gradient(fun_tf, mode, x):
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun_tf(x)
        return y, tape.gradient(y, x)

    return in_mode(both, mode)(tf.constant(x))


# Each thread has the modes in turn, so that some share one and some do not.
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_the_same_functions_in_all_modes(expected, is_shuffled):
    converted = {name: convert(fun) for name, fun in FUNCTIONS.items()}

    def work(i):
        jobs = [(name, SIZES[i // 4 % len(SIZES)]) for name in FUNCTIONS]
        if is_shuffled:
            random.Random(i).shuffle(jobs)
        # A program takes XLA long to compile.
        modes = [MODES[i % 2]] * len(jobs)
        modes[i % len(jobs)] = "compiled"
        return [
            (job, _value_and_gradient(converted[job[0]], mode, _argument(job[1])))
            for job, mode in zip(jobs, modes, strict=True)
        ]

    for results in at_once(work):
        for job, actual in results:
            for a, e in zip(actual, expected[job], strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def test_each_thread_has_its_own_functions(expected):
    def work(i):
        name = list(FUNCTIONS)[i % len(FUNCTIONS)]
        return [
            ((name, size), _value_and_gradient(convert(FUNCTIONS[name]), mode, _argument(size)))
            for mode in ("eager", "graph")
            for size in SIZES
        ]

    for results in at_once(work):
        for job, actual in results:
            for a, e in zip(actual, expected[job], strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def test_a_thread_has_its_own_settings_of_jax():
    fun_tf = convert(lambda x: x + jnp.arange(2))

    def work(i):
        with jax.enable_x64(i % 2 == 1):
            return [fun_tf(np.int64([1, 2])).dtype for _ in range(3)]

    for i, dtypes in enumerate(at_once(work)):
        assert set(dtypes) == {tf.int64 if i % 2 else tf.int32}


def test_bounded_has_one_value_for_a_key():
    bounded = Bounded(THREADS * 10)
    results = at_once(lambda i: [bounded.get(key, object) for key in range(10)])
    for values in zip(*results, strict=True):
        assert len(set(values)) == 1


def test_bounded_keeps_its_limit():
    bounded = Bounded(3)
    for values in at_once(lambda i: [bounded.get(k % 7, lambda k=k: k % 7) for k in range(300)]):
        assert values == [k % 7 for k in range(300)]
    assert len(bounded) == 3
