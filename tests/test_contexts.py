"""Converted functions give the same results wherever TensorFlow runs them."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert
from tests.helpers import MODES, ROOT, in_mode

W = np.float32([[1, 2], [3, 4], [5, 6]]) / 10
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def fun_jax(x):
    h = jnp.tanh(x @ W)
    return lax.scan(lambda c, y: (c * 0.5 + y, c * y), h.sum(0), h)[1].sum(1)


FUN = convert(fun_jax)
Y = jax.jit(fun_jax)(X)
GRADIENT = jax.grad(lambda x: fun_jax(x).sum())(X)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def gradient(fun, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fun(x)
    return tape.gradient(y, x)


def test_init_scope():
    lifted = []

    @tf.function(autograph=False)
    def fun(x):
        with tf.init_scope():
            lifted.append(convert(fun_jax)(X))
        return FUN(x)

    close(fun(X), Y)
    close(lifted[0], Y)


def test_datasets():
    data = tf.data.Dataset.from_tensor_slices(np.stack([X] * 4)).map(FUN, num_parallel_calls=2)
    for y in data:
        close(y, Y)
    batched = convert(lambda x: jnp.tanh(x @ W), polymorphic_shapes="(b, 3)")
    data = tf.data.Dataset.from_tensor_slices(X).batch(3).map(batched)
    close(np.concatenate(list(data)), np.tanh(X @ W))


def test_mirrored_strategy():
    subprocess.run([sys.executable, "-m", "tests.mirrored"], cwd=ROOT, check=True)


def test_graphs_and_sessions_of_tensorflow_1():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, X.shape)
        y = tf.cond(tf.reduce_all(x < 2), lambda: FUN(x), lambda: tf.zeros(4))
        results = session.run([FUN(x), y, *tf.gradients(FUN(x), x), *tf.gradients(y, x)], {x: X})
    for actual, expected in zip(results, (Y, Y, GRADIENT, GRADIENT), strict=True):
        close(actual, expected)


def test_py_function():
    close(tf.function(lambda x: tf.py_function(FUN, [x], tf.float32))(X), Y)


def test_maps():
    xs = tf.constant(np.stack([X, X * 2]))
    for fun in (tf.map_fn, tf.vectorized_map):
        close(fun(FUN, xs), np.stack([fun_jax(x) for x in xs.numpy()]))


@pytest.mark.parametrize("mode", MODES)
def test_branch_in_a_loop(mode):
    """The branch differentiates a tensor that comes from outside of the loop."""
    branch = convert(lambda x: jnp.tanh(x @ W).sum(1))

    def fun(x):
        def body(i, y):
            return i + 1, y + tf.cond(y[0] < 1e9, lambda: branch(x), lambda: y)

        return tf.while_loop(lambda i, _: i < 3, body, (0, tf.zeros(4)), maximum_iterations=3)[1]

    expected = 3 * jax.grad(lambda x: jnp.tanh(x @ W).sum())(X)
    close(in_mode(lambda x: gradient(fun, x), mode)(tf.constant(X)), expected)


def test_nested_functions_and_autograph():
    inner = tf.function(FUN)

    @tf.function(reduce_retracing=True)
    def outer(x):
        total = tf.zeros(4)
        for _ in tf.range(2):
            if tf.reduce_all(x < 2):
                total += inner(x)
        return total

    close(outer(X), 2 * Y)
    close(gradient(outer, tf.constant(X)), 2 * GRADIENT)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_forward_accumulator(mode):
    x, tangent = tf.constant(X), np.ones_like(X)
    fun_tf = in_mode(FUN, mode)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(tangent)) as accumulator:
        y = fun_tf(x)
    close(accumulator.jvp(y), jax.jvp(fun_jax, (X,), (tangent,))[1])


def test_persistent_tapes_and_jacobians():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = FUN(x)
    close(tape.gradient(y, x), GRADIENT)
    close(tape.jacobian(y, x), jax.jacobian(fun_jax)(X))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_keras(is_compiled):
    import keras

    class Dense(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            shapes = (None, "(b, 3)")
            self.fun = convert(lambda w, x: jnp.tanh(x @ w), polymorphic_shapes=shapes)
            self.w = self.add_weight(shape=(3, 2), initializer=lambda *_, **__: tf.constant(W))

        def call(self, x):
            return self.fun(self.w, x)

    inputs = keras.Input((3,))
    model = keras.Model(inputs, Dense()(inputs))
    close(model.predict(X, verbose=0), np.tanh(X @ W))
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=is_compiled)
    model.fit(X, np.ones((4, 2), np.float32), batch_size=4, verbose=0)
    step = jax.grad(lambda w: jnp.mean((jnp.tanh(X @ w) - 1) ** 2))(W)
    close(model.get_weights()[0], W - 0.1 * step)
