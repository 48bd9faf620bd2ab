"""Models that only compute results refuse functions that do more."""

import re

import numpy as np
import pytest
import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.export import onnx
from lowering.export.tfjs import graph_model

X = tf.TensorSpec([2], tf.float32, "x")


@pytest.fixture
def write(tmp_path):
    """Writes a function as a model of a format, and returns its path."""

    def written(module, fun):
        if module is onnx:
            pytest.importorskip("onnx_ir")
        path = tmp_path / module.__name__
        module.write(tf.function(fun, autograph=False).get_concrete_function(X), path)
        return path

    return written


def adding(v, x):
    v.assign_add(x)
    return v + 0.0


def in_a_function(v, x):
    tf.function(lambda y: v.assign(y))(x)
    return 2 * x


def in_a_branch(v, x):
    return tf.cond(x[0] > 0, lambda: v.assign(x) + 0.0, lambda: x)


def in_a_branch_without_results(v, x):
    tf.cond(x[0] > 0, lambda: v.assign(x), lambda: v + 1)
    return 2 * x


def in_a_loop(v, x):
    def step(i, y):
        v.assign_add(y)
        return i + 1, 2 * y

    return tf.while_loop(lambda i, y: i < 3, step, [0, x])[1]


def of_elements(v, x):
    v.scatter_nd_update([[0]], x[:1])
    return v + 0.0


def queueing(v, x):
    queue = tf.queue.FIFOQueue(3, [tf.float32])
    queue.enqueue(x)
    return 2 * x


def calling(v, x):
    tf.py_function(print, [x], [])
    return 2 * x


ACTING = {
    adding: "AssignAddVariableOp",
    in_a_function: "AssignVariableOp",
    in_a_branch: "AssignVariableOp",
    in_a_branch_without_results: "AssignVariableOp",
    in_a_loop: "AssignAddVariableOp",
    of_elements: "ResourceScatterNdUpdate",
    queueing: "QueueEnqueueV2",
    calling: "EagerPyFunc",
}


@pytest.mark.parametrize("module", [onnx, graph_model])
@pytest.mark.parametrize("fun", ACTING)
def test_a_side_effect_is_named(fun, module, write):
    variable = tf.Variable([0.0, 0.0])
    named = re.compile(rf"' is {ACTING[fun]}, whose side effect an? .* model cannot have")
    with pytest.raises(UnsupportedError, match=named):
        write(module, lambda x: fun(variable, x))


@pytest.mark.parametrize("module", [onnx, graph_model])
def test_prints_and_assertions_are_left_out(module, write):
    variable = tf.Variable([1.0, 2.0])

    def fun(x):
        tf.print(x)
        tf.debugging.assert_all_finite(x, "it is not finite")
        tf.debugging.assert_positive(x)
        tf.cond(x[0] > 0, lambda: tf.print(x), tf.no_op)
        tf.random.uniform([2])
        return variable * x

    path = write(module, fun)
    if module is onnx:
        session = pytest.importorskip("onnxruntime").InferenceSession(path)
        (result,) = session.run(None, {"x": np.float32([3, 4])})
        np.testing.assert_array_equal(result, [3, 8])
