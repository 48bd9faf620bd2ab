"""Ops that a graph has once, and that live as long as the graph."""

import gc
import weakref

import tensorflow as tf

from lowering.ops import bitcast, constant, memo


def test_an_op_is_made_once_per_graph():
    for _ in range(2):
        with tf.Graph().as_default() as graph:
            first, second = (memo.once("zeros", lambda: tf.zeros([3])) for _ in range(2))
            assert first is second
            assert len(graph.get_operations()) == 1


def test_a_bitcast_of_a_bitcast_is_one():
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.uint32, [2, 2])
        assert bitcast(bitcast(x, tf.int32), tf.uint32) is x
        y = bitcast(bitcast(x, tf.int32), tf.float32)
        assert y is bitcast(x, tf.float32)
        assert [op.type for op in graph.get_operations()] == ["Placeholder", "Bitcast", "Bitcast"]
        assert y.op.inputs[0] is x


def test_a_graph_is_freed_with_its_constants():
    graph = tf.Graph()
    with graph.as_default():
        constant(1.0, tf.float32)
    freed = weakref.ref(graph)
    del graph
    gc.collect()
    assert freed() is None
