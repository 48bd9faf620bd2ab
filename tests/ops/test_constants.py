"""Constants of a graph are made once and shared."""

import numpy as np
import tensorflow as tf

from lowering.ops import constants


def test_constants_are_shared_in_a_graph():
    with tf.Graph().as_default() as graph:
        one = constants.constant([1, 2], np.int32)
        with tf.name_scope("elsewhere"):
            assert constants.constant(np.int32([1, 2])) is one
        assert constants.constant([1, 2], tf.int64) is not one
        assert constants.constant([[1, 2]], np.int32) is not one
        assert constants.integers([1, 2]) is one
    assert len(graph.get_operations()) == 3
    with tf.Graph().as_default():
        assert constants.constant([1, 2], np.int32) is not one


def test_signed_zeros_are_different_constants():
    zero, negative = constants.constant(np.float32(0.0)), constants.constant(np.float32(-0.0))
    assert not np.signbit(zero.numpy()) and np.signbit(negative.numpy())


def test_constants_made_in_a_loop_are_reachable_outside():
    @tf.function(autograph=False)
    def fun(x):
        (x,) = tf.while_loop(lambda x: x < 5, lambda x: [x + constants.constant(2, tf.int32)], [x])
        return x + constants.constant(2, tf.int32)

    assert fun(tf.constant(0)) == 8


def test_indices_beyond_int32():
    assert constants.integers([1, 2]).dtype == tf.int32
    assert constants.integers([]).dtype == tf.int32
    assert constants.integers([2**31]).dtype == tf.int64


def test_large_constants_are_shared_by_identity():
    large = np.arange(1 << 16, dtype=np.float32)
    with tf.Graph().as_default():
        assert constants.constant(large) is constants.constant(large)
        assert constants.constant(large) is not constants.constant(large.copy())
