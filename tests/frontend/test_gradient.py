"""Gradients by TensorFlow of converted functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert
from tests.helpers import MODES, assert_same, in_mode


def gradients(fun_jax, *args, mode="eager"):
    """The gradients by TensorFlow of the sum of squares of the results."""
    fun_tf = convert(fun_jax)

    def gradients_of(*args):
        with tf.GradientTape() as tape:
            tape.watch([x for x in args if x.dtype.is_floating or x.dtype.is_complex])
            results = tf.nest.flatten(fun_tf(*args))
            loss = sum(
                tf.reduce_sum(tf.square(tf.abs(y)))
                for y in results
                if y.dtype.is_floating or y.dtype.is_complex
            )
        return tape.gradient(loss, args)

    return in_mode(gradients_of, mode)(*map(tf.constant, args))


def expected_gradients(fun_jax, *args, argnums=0):
    def loss(*args):
        results = jax.tree.leaves(fun_jax(*args))
        return sum(
            jnp.sum(jnp.abs(y) ** 2) for y in results if jnp.issubdtype(y.dtype, jnp.inexact)
        )

    return jax.grad(loss, argnums)(*args)


@pytest.mark.parametrize("mode", MODES)
def test_gradient(mode):
    def fun(x, y):
        return jnp.sin(x) @ y, {"z": jnp.tanh(y)}

    args = np.float32([[1, 2, 3]]), np.float32([[0.5], [1], [-1]])
    actual = gradients(fun, *args, mode=mode)
    assert_same(list(actual), list(expected_gradients(fun, *args, argnums=(0, 1))))


def test_gradient_of_integers_and_unused_arguments():
    def fun(x, indices, unused, flags):
        return jnp.where(flags, x[indices], 2.0), indices + 1

    args = np.float32([1, 2, 3]), np.int32([2, 0]), np.float32([4, 5]), np.bool_([True, False])
    x, indices, unused, flags = gradients(fun, *args)
    assert_same(x, expected_gradients(fun, *args))
    assert_same(unused, np.zeros(2, np.float32))
    assert indices is None and flags is None


def test_gradient_of_integers_alone():
    fun_tf = convert(lambda x: x * 2)
    with tf.GradientTape() as tape:
        x = tf.constant([1, 2])
        y = tf.cast(fun_tf(x), tf.float32)
    assert tape.gradient(y, x) is None


def test_gradient_of_a_custom_vjp():
    @jax.custom_vjp
    def fun(x):
        return x**2

    fun.defvjp(lambda x: (x**2, None), lambda _, g: (g * 100,))
    x = np.float32(3)
    assert_same(gradients(fun, x)[0], expected_gradients(fun, x))
    assert gradients(fun, x)[0] == 2 * 9 * 100


def test_gradient_of_a_custom_jvp():
    @jax.custom_jvp
    def fun(x):
        return x**2

    fun.defjvp(lambda x, t: (x[0] ** 2, 10 * t[0]))
    x = np.float32(3)
    assert_same(gradients(fun, x)[0], expected_gradients(fun, x))


@pytest.mark.parametrize("mode", MODES)
def test_gradient_of_complex_numbers(mode):
    """TensorFlow's gradient of a complex number is the conjugate of JAX's."""

    def fun(x, y):
        return x * x * y + jnp.conj(x), jnp.imag(x) * y

    args = np.complex64([1 + 2j, 3 - 1j]), np.complex64([2 - 1j, 1j])
    expected = expected_gradients(fun, *args, argnums=(0, 1))
    actual = gradients(fun, *args, mode=mode)
    assert_same(list(actual), [np.conj(g) for g in expected])

    def same_in_tensorflow(x, y):
        return x * x * y + tf.math.conj(x), tf.cast(tf.math.imag(x), tf.complex64) * y

    x, y = map(tf.constant, args)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        loss = sum(tf.reduce_sum(tf.abs(z) ** 2) for z in same_in_tensorflow(x, y))
    for a, e in zip(actual, tape.gradient(loss, [x, y])):
        np.testing.assert_allclose(a, e, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_second_order_gradient(mode):
    fun_tf = convert(lambda x: jnp.sum(jnp.sin(x) ** 3))

    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = fun_tf(x)
            first = inner.gradient(y, x)
            total = tf.reduce_sum(first**2)
        return outer.gradient(total, x)

    x = np.float32([0.3, 1.2])

    def total_jax(x):
        return jnp.sum(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 3))(x) ** 2)

    np.testing.assert_allclose(
        in_mode(second, mode)(tf.constant(x)), jax.grad(total_jax)(x), rtol=1e-5
    )


def test_gradient_of_variables():
    w = tf.Variable([1.0, 2.0])
    fun_tf = convert(lambda w, x: jnp.dot(w, x) ** 2)
    with tf.GradientTape() as tape:
        y = fun_tf(w, tf.constant([3.0, 4.0]))
    np.testing.assert_allclose(tape.gradient(y, w), [66, 88])


def test_gradient_of_a_weakly_typed_result():
    x = np.float32(2)
    assert_same(gradients(lambda x: (x * 0 + 1, x), x)[0], np.float32(4))


@pytest.mark.parametrize("target", ["xla", "tf", "portable", "tflite"])
def test_with_gradient_false(target, tmp_path):
    fun_tf = convert(lambda x: (x * 2, jnp.sin(x)), with_gradient=False, target=target)
    x = tf.constant(1.0)
    graph = tf.function(fun_tf, autograph=False)
    assert fun_tf(x)[0] == graph(x)[0] == 2

    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _ = fun_tf(x)
        return tape.gradient(y, x)

    def outside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = graph(x)
        return tape.gradient(y, x)

    def forward(x):
        with tf.autodiff.ForwardAccumulator(x, x):
            return fun_tf(x)

    module = tf.Module()
    module.graph = tf.function(fun_tf, [tf.TensorSpec((), tf.float32)], autograph=False)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path)).graph

    def of_loaded(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _ = loaded(x)
        return tape.gradient(y, x)

    for differentiated in (inside, tf.function(inside, autograph=False), forward):
        with pytest.raises(LookupError, match="with_gradient=False"):
            differentiated(x)
    for differentiated in (outside, of_loaded):
        with pytest.raises(LookupError):
            differentiated(x)


@pytest.mark.parametrize("shape", [(), (2,)])
def test_gradient_of_a_function_of_keys(shape):
    def fun(key, x):
        keys = jax.random.split(key) if not key.shape else key
        return x * jax.random.normal(keys[0])

    keys = jax.random.split(jax.random.key(3), shape) if shape else jax.random.key(3)
    fun_tf, x = convert(fun), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fun_tf(keys, x)
    assert_same(tape.gradient(y, x), np.asarray(jax.grad(fun, 1)(keys, np.float32(2))))
