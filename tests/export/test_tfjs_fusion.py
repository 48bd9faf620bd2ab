"""Fused ops in graph models of TF.js, and ops that it lacks."""

import collections
import json

import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import export
from lowering.errors import UnsupportedError
from lowering.export.tfjs import graph_model, node

ACTIVATIONS = {
    "none": lambda x: x,
    "Relu": tf.nn.relu,
    "Relu6": tf.nn.relu6,
    "Elu": tf.nn.elu,
    "Sigmoid": tf.sigmoid,
    "LeakyRelu": lambda x: tf.nn.leaky_relu(x, 0.3),
}


def _normal(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _convolution(x):
    return tf.nn.conv2d(x, _normal(3, 3, 4, 6), 2, "SAME")


def _depthwise(x):
    return tf.nn.depthwise_conv2d(x, _normal(3, 3, 4, 2), (1, 1, 1, 1), "VALID")


def _product(x):
    return tf.reshape(x, (-1, 4)) @ _normal(4, 3)


def _transposed_product(x):
    return tf.matmul(tf.reshape(x, (-1, 4)), _normal(3, 4), transpose_b=True)


PRODUCTS = {
    _convolution: ("_FusedConv2D", 6),
    _depthwise: ("FusedDepthwiseConv2dNative", 8),
    _product: ("_FusedMatMul", 3),
    _transposed_product: ("_FusedMatMul", 3),
}


def _ops(fun, x, folder, nodes_of=lambda topology: topology["node"]):
    """How often a model has each op, after a comparison of what it computes with TensorFlow."""
    spec = tf.TensorSpec([None, *x.shape[1:]], x.dtype, "x")
    function = tf.function(fun, autograph=False, input_signature=[spec])
    concrete = function.get_concrete_function()
    graph_model.write(concrete, folder)
    expected = tf.nest.flatten(function(x))
    with node.Node() as process:
        for found in process.run_everywhere(folder, {"x": x}).values():
            for e, a in zip(expected, found.values(), strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5)
    topology = json.loads((folder / "model.json").read_text())["modelTopology"]
    return collections.Counter(n["op"] for n in nodes_of(topology))


@pytest.mark.parametrize("product", PRODUCTS)
def test_bias_and_activation(product, tmp_path):
    op, features = PRODUCTS[product]
    bias = _normal(features)

    def fun(x):
        return [activation(product(x) + bias) for activation in ACTIVATIONS.values()]

    ops = _ops(fun, _normal(2, 5, 5, 4), tmp_path / "model")
    assert ops[op] == 6
    assert not {"Relu", "Relu6", "Elu", "Sigmoid", "AddV2", "BiasAdd"} & set(ops)
    assert ops["LeakyRelu"] == (product is _depthwise)


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_factor_of_each_feature(product, tmp_path):
    op, features = PRODUCTS[product]
    factor, bias = _normal(1, features), _normal(features)

    def fun(x):
        return tf.nn.relu(product(x) * factor + bias), product(x) * factor

    ops = _ops(fun, _normal(2, 5, 5, 4), tmp_path / "model")
    assert ops[op] == 1
    assert ops["Relu"] == 0


def test_what_is_not_fused(tmp_path):
    """Other readers, addends of other shapes, and activations without a bias."""
    bias = _normal(6)

    def fun(x):
        read_twice = _convolution(x)
        added_twice = tf.nn.bias_add(_convolution(x) * 2.0, bias)
        return (
            tf.nn.relu(read_twice + bias) + read_twice,
            tf.nn.relu(added_twice) + tf.tanh(added_twice),
            tf.nn.relu(_convolution(x) * 3.0),
            _convolution(x) * 4.0 + _normal(3, 6),
            _convolution(x) * 5.0 + tf.reduce_sum(x),
        )

    ops = _ops(fun, _normal(2, 5, 5, 4), tmp_path / "model")
    assert ops["_FusedConv2D"] == 1  # That with the sum of two activations.
    assert ops["Conv2D"] == 4


def test_weights_of_a_loop(tmp_path):
    weights, bias = _normal(4, 4), _normal(4)

    def step(i, y):
        return i + 1, tf.nn.relu(y @ tf.constant(weights) + tf.constant(bias))

    def fun(x):
        return tf.while_loop(lambda i, _: i < 3, step, (0, x))

    ops = _ops(
        fun,
        _normal(2, 4),
        tmp_path / "model",
        lambda topology: [n for f in topology["library"]["function"] for n in f["nodeDef"]],
    )
    assert ops["_FusedMatMul"] == 1


@pytest.mark.parametrize("op", ["Bitcast", "in a loop"])
def test_ops_that_it_lacks(op, tmp_path):
    def fun(x):
        return tf.bitcast(tf.bitcast(x, tf.int32) + 1, tf.float32)

    def repeated(x):
        return tf.while_loop(lambda y: tf.reduce_sum(y) < 100.0, fun, [x])

    spec = tf.TensorSpec([3], tf.float32)
    function = tf.function(fun if op == "Bitcast" else repeated, autograph=False)
    with pytest.raises(UnsupportedError, match="Bitcast, which"):
        graph_model.write(function.get_concrete_function(spec), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_images_of_any_size_are_normalized(tmp_path):
    """TensorFlow's optimizer would make a batch normalization with an activation."""
    scale, offset, mean, variance = np.abs(_normal(4, 6))

    def fun(x):
        y = tf.raw_ops.FusedBatchNormV3(
            x=_convolution(x),
            scale=scale,
            offset=offset,
            mean=mean,
            variance=variance,
            is_training=False,
        ).y
        return tf.nn.relu(y)

    ops = _ops(fun, _normal(2, 5, 5, 4), tmp_path / "model")
    assert ops["FusedBatchNormV3"] == 1


def test_lists_of_tensors_have_no_control_inputs(tmp_path):
    """The optimizer folds a selection between the parts of a complex matrix of one element."""
    x = np.full((1,) * 6, 1 + 2j, np.complex64)
    export.to_tfjs(lax.linalg.lu, (x,), path=tmp_path / "model")
