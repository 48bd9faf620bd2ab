"""The Threefry hash is one function of a graph."""

import subprocess
import sys

import jax
import numpy as np
import pytest
import tensorflow as tf

import lowering
from tests.helpers import graph_of

KEY_DATA = np.array([3, 4], np.uint32)


@pytest.mark.parametrize("compiled", [False, True])
def test_threefry_is_one_function(compiled):
    def fun(data):
        key = jax.random.wrap_key_data(data)
        first, second = jax.random.split(key)
        return jax.random.normal(first, (3,)), jax.random.uniform(second, (100, 200))

    library = graph_of(fun, KEY_DATA, compiled=compiled, target="tf").as_graph_def().library
    names = [function.signature.name for function in library.function]
    assert sum("four_rounds_by_shifts" in name for name in names) == 1
    assert sum("_by_floats" in name for name in names) == (0 if compiled else 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_natural_graph_has_what_is_fast_in_its_mode(compiled):
    def fun(data):
        return jax.random.bits(jax.random.wrap_key_data(data), (100, 200))

    library = graph_of(fun, KEY_DATA, compiled=compiled, target="portable").as_graph_def().library
    ops = {node.op for function in library.function for node in function.node_def}
    assert ("RightShift" in ops, "Case" in ops) == (compiled, False)


_COMPILE_ARGMAX = """
import sys
import jax, jax.numpy as jnp, numpy as np, tensorflow as tf
import lowering

def fun(data):
    key = jax.random.wrap_key_data(data)
    drawn = jax.random.normal, jax.random.uniform, jax.random.bits
    return [
        result
        for shape in [(8,), (3, 32), (1000,)]
        for result in (
            jax.random.categorical(key, jnp.zeros(shape)),
            *(jnp.argmin(draw(key, shape), -1) for draw in drawn),
        )
    ]

data = np.array([3, 4], np.uint32)
converted = lowering.convert(fun, target=sys.argv[1])
results = tf.function(converted, jit_compile=True, autograph=False)(data)
np.testing.assert_equal([x.numpy() for x in results], [np.asarray(x) for x in fun(data)])
"""


@pytest.mark.parametrize("target", ["tf", "portable"])
def test_argmax_of_random_numbers_compiles(target):
    """LLVM did not finish where the hash was in one loop with a reduction of eight or more."""
    command = [sys.executable, "-c", _COMPILE_ARGMAX, target]
    subprocess.run(command, check=True, capture_output=True, timeout=240)


@pytest.mark.parametrize("target", ["tf", "portable"])
def test_sizes_around_the_limit_of_kernels(target):
    for size in (4095, 4096, 4097):
        fun = lambda data, size=size: jax.random.bits(  # noqa: E731
            jax.random.wrap_key_data(data), (size,)
        )
        converted = lowering.convert(fun, target=target)
        np.testing.assert_array_equal(
            tf.function(converted, autograph=False)(KEY_DATA), fun(KEY_DATA)
        )
        np.testing.assert_array_equal(converted(KEY_DATA), fun(KEY_DATA))
