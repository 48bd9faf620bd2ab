"""Ops that are made as one of their kind was made before."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from lowering import targets
from lowering.errors import UnsupportedError
from lowering.ops import emission, emit, kernels, making

X = np.arange(6, dtype=np.float32).reshape(2, 3)

# An op, its operands as a function of a tensor, and its attributes.
OPS = [
    ("Sin", lambda x: [x], {}),
    ("AddV2", lambda x: [x, x], {}),
    ("Cast", lambda x: [x], {"DstT": tf.int32}),
    ("Sum", lambda x: [x, tf.constant([0])], {"keep_dims": True}),
    ("Sum", lambda x: [x, tf.constant([0])], {"keep_dims": False}),
    ("ConcatV2", lambda x: [[x, x], tf.constant(1)], {}),
    ("ConcatV2", lambda x: [[x, x, x], tf.constant(1)], {}),
    ("Squeeze", lambda x: [x[None]], {"axis": [0]}),
    ("Squeeze", lambda x: [x[None]], {"axis": []}),
    ("Unpack", lambda x: [x], {"num": 2}),
    ("TopKV2", lambda x: [x, tf.constant(2)], {}),
    ("LeakyRelu", lambda x: [x], {"alpha": 0.5}),
    ("AddV2", lambda x: [tf.cast(x, tf.int32), tf.cast(x, tf.int32)], {}),
]


def _nodes(results):
    """What a graph says of the op of some results, but for its name and those of its operands."""
    node = tf.nest.flatten(results)[0].op.node_def
    return node.op, len(node.input), dict(node.attr)


def test_they_are_the_ops_of_tensorflow():
    def fun(x):
        for op, operands, attrs in OPS:
            names = emission._input_names(op)
            raw = getattr(tf.raw_ops, op)(**dict(zip(names, operands(x), strict=True)), **attrs)
            for _ in range(2):
                made = making.run(op, names, operands(x), attrs)
                assert type(made) is type(raw) and _nodes(made) == _nodes(raw)
                shapes = [y.shape for y in tf.nest.flatten(made)]
                assert shapes == [y.shape for y in tf.nest.flatten(raw)]
        return x

    tf.function(fun, autograph=False).get_concrete_function(tf.TensorSpec([2, 3]))


def test_scopes_names_and_captures():
    eager = tf.constant(X)

    @tf.function(autograph=False)
    def fun(x):
        with tf.name_scope("outer"):
            first, second = emit("AddV2", x, eager), emit("AddV2", x, eager)
        assert [y.op.name for y in (first, second)] == ["outer/AddV2", "outer/AddV2_1"]
        branch = tf.cond(x[0, 0] > 0, lambda: emit("AddV2", first, eager), lambda: second)
        return branch + emit("AddV2", x, eager)

    for _ in range(2):
        np.testing.assert_array_equal(fun(X), X + X + X + X)


def test_a_graph_is_freed():
    def made():
        graph = tf.function(lambda x: emit("AddV2", emit("Tan", x), x), autograph=False)
        return weakref.ref(graph.get_concrete_function(tf.TensorSpec([5, 7])).graph)

    references = [made() for _ in range(2)]
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_callbacks_see_each_op():
    """Among them the check of what a consumer lacks."""
    seen = []

    def see(op, *_, **__):
        seen.append(op)

    def fun(x):
        for _ in range(2):
            emit("Sin", x)
        op_callbacks.add_op_callback(see)
        try:
            emit("Sin", x)
        finally:
            op_callbacks.remove_op_callback(see)
        return x

    tf.function(fun, autograph=False).get_concrete_function(tf.TensorSpec([3], tf.float32))
    assert "Sin" in [getattr(op, "decode", lambda op=op: op)() for op in seen]


def test_what_a_runtime_lacks_is_refused_each_time():
    """An op that has passed for one target, or unchecked, is checked for another."""
    op, dtype = "Exp", "bfloat16"
    assert targets.TFLITE.lacks(op, dtype)

    def fun(x):
        for _ in range(2):
            making.run(op, ("x",), (x,), {})
        with kernels.checked(targets.TFLITE), targets.lowering_for(targets.TFLITE):
            with kernels.unchecked():
                making.run(op, ("x",), (x,), {})
            for _ in range(2):
                with pytest.raises(UnsupportedError, match=f"{op} of {dtype}"):
                    making.run(op, ("x",), (x,), {})
        return x

    tf.function(fun, autograph=False).get_concrete_function(tf.TensorSpec([3], dtype))
