"""The graphs of the portable target are the ones that a person would have written."""

import collections

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering

IMAGES = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)
INTEGERS = np.arange(-12, 12, dtype=np.int32).reshape(4, 6)

# The ops of which there is nothing to see.
_HIDDEN = {"Placeholder", "Const", "Identity", "NoOp"}

# A program, its argument, and its only ops.
ONE_OP = {
    "relu": (jax.nn.relu, IMAGES, ["Relu"]),
    "relu6": (jax.nn.relu6, IMAGES, ["Relu6"]),
    "leaky_relu": (jax.nn.leaky_relu, IMAGES, ["LeakyRelu"]),
    "leaky_relu where": (lambda x: jnp.where(x > 0, x, 0.2 * x), IMAGES, ["LeakyRelu"]),
    "elu": (jax.nn.elu, IMAGES, ["Elu"]),
    "softplus": (jax.nn.softplus, IMAGES, ["Softplus"]),
    "silu": (jax.nn.silu, IMAGES, ["Sigmoid", "Mul"]),
    "softmax": (jax.nn.softmax, IMAGES, ["Softmax"]),
    "log_softmax": (jax.nn.log_softmax, IMAGES, ["LogSoftmax"]),
    "max": (lambda x: x.max(-1), IMAGES, ["Max"]),
    "min": (lambda x: x.min((1, 2)), IMAGES, ["Min"]),
    "maximum": (lambda x: jnp.maximum(x, 1.5), IMAGES, ["Maximum"]),
    "argmax": (lambda x: x.argmax(-1), IMAGES, ["ArgMax"]),
    "argmin of integers": (lambda x: x.argmin(0), INTEGERS, ["ArgMin"]),
    "sign": (jnp.sign, IMAGES, ["Sign"]),
    "clip": (lambda x: jnp.clip(x, -1, 1), IMAGES, ["ClipByValue"]),
    "clip of integers": (lambda x: jnp.clip(x, -1, 1), INTEGERS, ["Maximum", "Minimum"]),
    "quotient": (lambda x: x // 3, INTEGERS, ["FloorDiv"]),
    "modulus": (lambda x: x % 3, INTEGERS, ["FloorMod"]),
    "max_pool": (lambda x: nn.max_pool(x, (2, 2), (2, 2)), IMAGES, ["MaxPool"]),
    "max_pool, SAME": (lambda x: nn.max_pool(x, (3, 3), (2, 2), "SAME"), IMAGES, ["MaxPool"]),
    "avg_pool": (lambda x: nn.avg_pool(x, (2, 2), (2, 2)), IMAGES, ["AvgPool"]),
    "avg_pool, SAME": (
        lambda x: nn.avg_pool(x, (3, 3), (2, 2), "SAME"),
        IMAGES,
        ["PadV2", "AvgPool"],
    ),
}


def ops_of(fun, x, target):
    converted = lowering.convert(fun, target=target, with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(x)).graph
    return collections.Counter(op.type for op in graph.get_operations() if op.type not in _HIDDEN)


@pytest.mark.parametrize("name", ONE_OP)
def test_ops(name):
    fun, x, ops = ONE_OP[name]
    found = ops_of(fun, x, "portable")
    assert found == collections.Counter(ops)
    exact = ops_of(fun, x, "tf")
    assert found.total() <= exact.total() - exact["PreventGradient"]


@pytest.mark.parametrize("name", ONE_OP)
@pytest.mark.parametrize("compiled", [False, True])
def test_numbers(name, compiled):
    fun, x, _ = ONE_OP[name]
    expected = jax.jit(fun)(x)
    run = tf.function(
        lowering.convert(fun, target="portable"), autograph=False, jit_compile=compiled
    )
    np.testing.assert_allclose(run(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("divisor", [0, -1, 2, -7, 2**31 - 1, -(2**31)], ids=lambda d: f"by {d}")
def test_integer_division_by_known_numbers(divisor):
    x = np.array([0, 1, -1, 5, -5, 2**31 - 1, -(2**31)], np.int32)
    for fun in (lambda x: x // divisor, lambda x: x % divisor):
        expected = jax.jit(fun)(x)
        actual = tf.function(lowering.convert(fun, target="portable"), autograph=False)(x)
        np.testing.assert_array_equal(actual, expected)


def test_bounds_in_the_wrong_order():
    def clip(x):
        return jnp.clip(x, 1.0, -1.0)

    actual = lowering.convert(clip, target="portable")(IMAGES)
    np.testing.assert_array_equal(actual, clip(IMAGES))


def test_a_slope_that_is_no_literal():
    def leaky(x, slope):
        return jax.nn.leaky_relu(x, slope)

    actual = lowering.convert(leaky, target="portable")(IMAGES, np.float32(0.3))
    np.testing.assert_allclose(actual, leaky(IMAGES, 0.3), rtol=1e-6)


def test_no_graph_chooses_by_device():
    def solve(x):
        return jnp.linalg.solve(x @ x.T + 3 * jnp.eye(3), x[0])

    x = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32)
    found = ops_of(solve, x, "portable")
    assert not {"DeviceIndex", "Case", "PreventGradient"} & set(found)
