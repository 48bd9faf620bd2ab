"""Loops, branches and calls: symbolic sizes, known branches, gradients and SavedModels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from tests.helpers import MODES, in_mode, op_counts
from tests.scans import X, cumulative, graph_of


def test_eager_loop_with_symbolic_dimensions():
    def fun(x):
        return lax.fori_loop(0, 3, lambda i, y: y + jnp.ones(x.shape[0], x.dtype), x)

    # A variable is at least 1.
    converted = lowering.convert(fun, target="tf", polymorphic_shapes=["(b - 1,)"])
    for size in (0, 2, 5):
        np.testing.assert_array_equal(converted(np.zeros(size, np.float32)), np.full(size, 3.0))


def test_known_index_takes_one_branch():
    counts = op_counts(graph_of(lambda x: lax.switch(1, [jnp.sin, jnp.cos], x), X))
    assert counts["Cos"] == 1
    assert not counts["Sin"] and not counts["StatelessIf"] and not counts["StatelessCase"]


def test_body_called_often_is_a_function():
    @jax.jit
    def layer(x):
        for _ in range(10):
            x = jnp.sin(x) + 1
        return x

    counts = op_counts(graph_of(lambda x: layer(layer(layer(x))), X))
    assert counts["Sin"] == 10


def test_scan_over_a_symbolic_length():
    def fun(x):
        return lax.scan(lambda c, y: (c + y, c * y), jnp.zeros((), x.dtype), x)

    for compiled in (False, True):
        converted = tf.function(
            lowering.convert(fun, target="tf", polymorphic_shapes=["(t - 1,)"]),
            autograph=False,
            jit_compile=compiled,
            input_signature=[tf.TensorSpec((None,), tf.float32)],
        )
        for size in (0, 1, 6):
            for actual, expected in zip(converted(X[:size]), fun(X[:size]), strict=True):
                np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode):
    def fun(x):
        _, ys = cumulative(x)
        y = lax.cond(ys[0] > 0, jnp.sin, jnp.cos, ys.sum())
        return y + lax.fori_loop(0, 3, lambda i, z: z * jnp.cos(z), x).sum()

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    converted = lowering.convert(fun, target="tf")
    gradient = in_mode(gradient, mode)
    np.testing.assert_allclose(gradient(tf.constant(X)), jax.grad(fun)(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_custom_derivatives_are_respected(mode):
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, ()), lambda _, g: (jnp.clip(g, -1, 1),))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(lowering.convert(lambda x: clipped(x) * 5, target="tf")(x))
        return tape.gradient(y, x)

    gradient = in_mode(gradient, mode)
    np.testing.assert_array_equal(gradient(tf.constant(X)), np.ones_like(X))


def test_saved_loop_runs(tmp_path):
    module = tf.Module()
    module.run = tf.function(
        lowering.convert(cumulative, target="tf", with_gradient=False),
        autograph=False,
        input_signature=[tf.TensorSpec((6,), tf.float32)],
    )
    tf.saved_model.save(module, tmp_path)
    restored = tf.saved_model.load(tmp_path)
    for actual, expected in zip(restored.run(X), cumulative(X), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("target", "matrices", "is_loop"),
    [
        ("onnx", np.ones((80, 64, 64), np.float32), False),
        ("portable", np.ones((80, 64, 64), np.float32), True),
        # The equations of all steps would take more room than the weights.
        ("onnx", np.ones((80, 8, 8), np.float32), True),
        ("onnx", np.ones((80, 64), np.float32), True),
    ],
)
def test_runtimes_have_no_loops_over_layers_of_weights(target, matrices, is_loop):
    def fun(x):
        def layer(x, matrix):
            return jnp.tanh(x @ matrix if matrix.ndim == 2 else x * matrix), None

        return lax.scan(layer, x, matrices)[0]

    x = np.ones((1, matrices.shape[-1]), np.float32)
    converted = lowering.convert(fun, target=target, with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(x).graph
    assert bool(op_counts(graph)["StatelessWhile"]) == is_loop
