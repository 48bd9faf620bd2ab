"""The portable target has JAX's values beyond what TensorFlow's ops are made for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering

RANKS = (1, 4, 5, 6, 7, 8, 10)

# Functions of an array of any rank with dimensions of 2, and 3 along the axis.
FUNCTIONS = {
    "relu6": lambda x, axis: jax.nn.relu6(x),
    "softmax": lambda x, axis: jax.nn.softmax(x, axis),
    "log_softmax": lambda x, axis: jax.nn.log_softmax(x, axis),
    "logsumexp": lambda x, axis: jax.nn.logsumexp(x, axis),
    "argmax": lambda x, axis: jnp.argmax(x, axis),
    "argmin": lambda x, axis: jnp.argmin(x, axis),
    "max": lambda x, axis: x.max(axis),
    "mean": lambda x, axis: x.mean(axis),
    "all": lambda x, axis: (x > 0).all(axis),
    "cumsum": lambda x, axis: jnp.cumsum(x, axis),
    "cummax": lambda x, axis: lax.cummax(x, axis),
    "sort": lambda x, axis: jnp.sort(x, axis),
    "take": lambda x, axis: jnp.take(x, jnp.array([2, 0, -1]), axis),
    "take_along_axis": lambda x, axis: jnp.take_along_axis(x, jnp.argsort(x, axis), axis),
    "reverse": lambda x, axis: jnp.flip(x, axis),
    "roll": lambda x, axis: jnp.roll(x, 1, axis),
    "pad": lambda x, axis: jnp.pad(x, 1),
    "moveaxis": lambda x, axis: jnp.moveaxis(x, axis, 0),
    "transpose": lambda x, axis: x.T,
    "concatenate": lambda x, axis: jnp.concatenate([x, x], axis),
    "tile": lambda x, axis: jnp.tile(x, (2,) * x.ndim),
    "one_hot": lambda x, axis: jax.nn.one_hot(x.astype(np.int32), 3, axis=axis),
    "where": lambda x, axis: jnp.where(x > 0, x, x.max(axis, keepdims=True)),
    "set": lambda x, axis: jnp.moveaxis(x, axis, 0).at[jnp.array([2, 0])].set(1.0),
    "max_pool": lambda x, axis: lax.reduce_window(
        x, -np.inf, lax.max, (2,) * x.ndim, (1,) * x.ndim, "SAME"
    ),
    "contraction": lambda x, axis: jnp.tensordot(x, x, (axis, axis)),
}


def graph_of(fun, *args, compiled=False, target="portable"):
    """What the function gives as a graph of a target."""
    converted = lowering.convert(fun, target=target, with_gradient=False)
    function = tf.function(converted, autograph=False, jit_compile=compiled)
    return tf.nest.map_structure(lambda x: x.numpy(), function(*map(tf.constant, args)))


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_rank(name, rank):
    for axis in {0, rank // 2, rank - 1}:
        shape = [2] * rank
        shape[axis] = 3
        x = np.random.default_rng(rank).permutation(np.prod(shape)).reshape(shape)
        x = (x / x.size * 4 - 2).astype(np.float32)

        def fun(x, axis=axis):
            return FUNCTIONS[name](x, axis)

        np.testing.assert_allclose(graph_of(fun, x), jax.jit(fun)(x), rtol=2e-6, atol=1e-6)


MONOTONIC = {
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "sign": jnp.sign,
    "sigmoid": lambda x: jax.nn.sigmoid(100 * x),
    "tanh": lambda x: jnp.tanh(100 * x),
    "exp": lambda x: jnp.exp(-1000 * abs(x)),
    "negative": lambda x: -jax.nn.relu(x),
    "float16": lambda x: jax.nn.relu(x).astype(np.float16),
    "reshaped": lambda x: jax.nn.relu(x).reshape(3, 4),
}


@pytest.mark.parametrize("find", [jnp.argmax, jnp.argmin])
@pytest.mark.parametrize("name", MONOTONIC)
def test_the_first_of_equal_results_of_a_monotonic_function(name, find):
    """TensorFlow's optimizer finds the extremum of the arguments instead."""
    x = np.array([[-0.9, -0.3, -0.5, 0.0], [0.2, 0.4, 0.3, 0.1], [7, 9, 8, 9]], np.float32)

    def fun(x):
        return find(MONOTONIC[name](x), axis=1)

    np.testing.assert_array_equal(graph_of(fun, x), jax.jit(fun)(x))


@pytest.mark.parametrize("target", ["tf", "portable"])
@pytest.mark.parametrize("find", [jnp.argmax, jnp.argmin])
@pytest.mark.parametrize("fun", [jnp.sign, jax.nn.relu, jnp.negative])
def test_the_first_of_equal_integers(fun, find, target):
    x = np.array([[-9, -3, -5, 0], [2, 4, 3, 1]], np.int32)

    def index(x):
        return find(fun(x), axis=1)

    np.testing.assert_array_equal(graph_of(index, x, target=target), jax.jit(index)(x))


def test_quotients_of_complex_infinities():
    parts = [0.0, 1.0, -2.5, np.inf, -np.inf]
    numbers = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    x, y = np.broadcast_arrays(numbers[:, np.newaxis], numbers)
    expected, actual = np.asarray(x / jnp.asarray(y)), graph_of(lambda x, y: x / y, x, y)
    known = ~np.isnan(expected.real) & ~np.isnan(expected.imag)
    np.testing.assert_allclose(actual[known], expected[known], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_eigenvectors_are_orthonormal(compiled):
    x = np.random.default_rng(0).normal(size=(3, 12, 12)).astype(np.float32)
    symmetric = x + np.swapaxes(x, -1, -2)

    def fun(x):
        return jnp.linalg.eigh(x)[1]

    vectors = graph_of(fun, symmetric, compiled=compiled)
    gram = np.swapaxes(vectors, -1, -2) @ vectors
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(12), gram.shape), atol=1e-6)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("length", [3, 200])
def test_elements_at_the_indices_of_a_scan(x64, compiled, length):
    with jax.enable_x64(x64):

        def fun(x):
            def step(i, row):
                at = lax.dynamic_slice(row, (i % row.size,), (1,))[0]
                return i + 1, (at, jnp.take(row, i), row[i % 4])

            return lax.scan(step, 0, x)

        x = np.arange(length * 4, dtype=np.float32).reshape(length, 4)
        expected = jax.jit(fun)(x)
        jax.tree.map(np.testing.assert_array_equal, graph_of(fun, x, compiled=compiled), expected)
