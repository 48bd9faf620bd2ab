"""Sizes of symbolic and of known dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering.ops import constants, dims
from tests.helpers import graph_of, op_types


def test_sizes_of_symbolic_dimensions():
    b, c = jax.export.symbolic_shape("b, c")
    dimensions = dims.Dimensions({"b": tf.constant(7), "c": tf.constant(3)})
    cases = {
        b: 7,
        b + c: 10,
        2 * b - 3 * c + 1: 6,
        b * c: 21,
        b * b: 49,
        b // c: 2,
        b % c: 1,
        (b + 1) // (c - 1): 4,
        -b // c: -3,
    }
    for dim, expected in cases.items():
        assert dimensions.size(dim) == expected, dim
    assert dimensions.size(4) == 4
    np.testing.assert_array_equal(dimensions.shape([b, 5, b + c]), [7, 5, 10])
    assert dimensions.shape([2, 5]) is constants.integers([2, 5])


def test_maximum_and_minimum_of_dimensions():
    b, c = jax.export.symbolic_shape("b, c")
    dimensions = dims.Dimensions({"b": tf.constant(7), "c": tf.constant(3)})
    assert dimensions.size(jax.core.max_dim(b, c)) == 7
    assert dimensions.size(jax.core.min_dim(b, c)) == 3


def test_the_size_of_a_dimension_is_computed_once_per_graph():
    with tf.Graph().as_default() as graph:
        (b,) = jax.export.symbolic_shape("b")
        dimensions = dims.Dimensions({"b": tf.constant(7)})
        assert dimensions.size(2 * b) is dimensions.size(2 * b)

        @tf.function(autograph=False)
        def inner():
            return dimensions.size(2 * b)

        inner.get_concrete_function()
    assert len([op for op in graph.get_operations() if op.type == "Mul"]) == 1


def test_known_shapes_make_no_dynamic_ops():
    def fun(x):
        y = jnp.broadcast_to(x[None], (5, 2, 3)).reshape(10, 3)
        return jnp.concatenate([y, y * 2])[::2].T

    graph = graph_of(fun, np.ones((2, 3), np.float32))
    assert not {"Shape", "Pack", "Fill", "Range"} & set(op_types(graph))
