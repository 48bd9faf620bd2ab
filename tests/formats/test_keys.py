"""Keys move like any other array."""

import jax
import jax.numpy as jnp
import numpy as np
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


def test_physical_shapes():
    aval = jax.typeof(jax.random.split(jax.random.key(0, impl="rbg"), (2, 3)))
    assert avals.physical_shape(aval) == (2, 3, 4)
    assert avals.physical_aval(aval).dtype == np.uint32
