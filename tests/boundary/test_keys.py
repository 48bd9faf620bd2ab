"""Keys move like any other array."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import avals
from tests.helpers import graph_of, op_counts


def test_typed_keys_are_arguments():
    key = jax.random.key(7)
    (actual,) = lowering.convert(lambda key: (jax.random.split(key, 3),), target="tf")(key)
    np.testing.assert_array_equal(actual, jax.random.key_data(jax.random.split(key, 3)))


def test_a_moved_key_costs_one_op():
    def fun(words):
        pairs = jax.random.wrap_key_data(words)
        return jax.random.key_data(jnp.concatenate([pairs[1:], pairs[:1]]))

    graph = graph_of(fun, tf.TensorSpec((3, 2), tf.uint32), target="tf")
    assert op_counts(graph)["ConcatV2"] == 1


@pytest.mark.parametrize("is_known", [False, True])
def test_keys_whose_data_is_broadcast(is_known):
    def fun(word):
        word = np.uint32(7) if is_known else word
        key = jax.random.wrap_key_data(jnp.broadcast_to(word, (2,)))
        return jax.random.key_data(jnp.stack([key, key]))

    np.testing.assert_array_equal(lowering.convert(fun)(np.uint32(7)), np.full((2, 2), 7))


def test_a_callback_takes_keys():
    def words(keys):
        return np.asarray(jax.random.key_data(keys))

    def fun(key):
        shape = jax.ShapeDtypeStruct((3, 2), np.uint32)
        return jax.pure_callback(words, shape, jax.random.split(key, 3))

    key = jax.random.key(7)
    np.testing.assert_array_equal(lowering.convert(fun)(key), fun(key))


def test_physical_shapes():
    aval = jax.typeof(jax.random.split(jax.random.key(0, impl="rbg"), (2, 3)))
    assert avals.physical_shape(aval) == (2, 3, 4)
    assert avals.physical_aval(aval).dtype == np.uint32


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_known_keys_are_broadcast(impl):
    def of_known(x):
        keys = jnp.broadcast_to(jax.random.key(7, impl=impl), (3, 2))
        return jax.random.key_data(keys), x

    expected = jax.jit(of_known)(1.0)
    converted = lowering.convert(of_known)
    for run in (converted, tf.function(converted, autograph=False)):
        np.testing.assert_array_equal(run(1.0)[0], expected[0])
