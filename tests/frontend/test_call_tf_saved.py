"""Saved models that `lowering.call_tf` calls, and that are made of programs which call it."""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import call_tf, convert
from tests.frontend.calling import TRANSFORMATIONS, X, fun_jax, fun_tf, same, summed


def save_and_load(fun_tf, shape, path, with_gradients=True):
    """A function of an array of a shape, from a SavedModel."""
    module = tf.Module()
    module.fun = tf.function(fun_tf, autograph=False, input_signature=[tf.TensorSpec(shape)])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=with_gradients)
    tf.saved_model.save(module, path, options=options)
    return tf.saved_model.load(path).fun


class TestSavedModels:
    """From JAX to a SavedModel and back."""

    @pytest.mark.parametrize(
        "name", ["none", "jit", "grad", "jit_grad", "jvp", "jit_jvp", "vmap_grad"]
    )
    def test_round_trip(self, name, tmp_path):
        fun = jax.custom_vjp(lambda x: jnp.sin(x) * x)
        fun.defvjp(lambda x: (jnp.sin(x) * x, x), lambda x, g: (g * jnp.cos(x) * 100,))
        transform = TRANSFORMATIONS[name]
        shape = [] if name.startswith("vmap") else [3]
        used = (lambda x: jnp.sin(x) * x) if "jvp" in name else fun
        loaded = save_and_load(convert(used), shape, tmp_path)
        same(transform(call_tf(loaded))(X), transform(used)(X))

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_second_derivatives(self, jit, tmp_path):
        """TensorFlow saves first derivatives alone."""
        loaded = call_tf(save_and_load(convert(jnp.sin), [3], tmp_path))
        with pytest.raises((LookupError, TypeError), match="has first derivatives alone"):
            jit(jax.hessian(summed(loaded)))(X)

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_without_custom_gradients(self, jit, tmp_path):
        loaded = call_tf(save_and_load(convert(jnp.sin), [3], tmp_path, with_gradients=False))
        same(jit(loaded)(X), jnp.sin(X))
        with pytest.raises(TypeError, match="experimental_custom_gradients=True"):
            jit(jax.grad(summed(loaded)))(X)

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_with_gradient_false(self, jit, tmp_path):
        loaded = call_tf(save_and_load(convert(jnp.sin, with_gradient=False), [3], tmp_path))
        same(jit(loaded)(X), jnp.sin(X))
        with pytest.raises(LookupError, match="Use with_gradient=True"):
            jit(jax.grad(summed(loaded)))(X)

    def test_a_function_without_results(self, tmp_path):
        module = tf.Module()
        module.fun = tf.function(lambda x: None, input_signature=[tf.TensorSpec([3])])
        tf.saved_model.save(module, tmp_path)
        loaded = tf.saved_model.load(tmp_path)
        assert not jax.tree.leaves(call_tf(loaded.fun)(X))
        assert not jax.tree.leaves(jax.jit(call_tf(loaded.fun))(X))

    def test_a_signature(self, tmp_path):
        module = tf.Module()
        module.fun = tf.function(
            lambda x: {"y": x * 2}, input_signature=[tf.TensorSpec([3], name="x")]
        )
        tf.saved_model.save(module, tmp_path, signatures=module.fun)
        signature = tf.saved_model.load(tmp_path).signatures["serving_default"]
        same(jax.jit(call_tf(signature))(x=X), {"y": 2 * X})


def test_inside_of_a_graph_of_tensorflow():
    """JAX computes at once there, and so does a function that it calls."""

    @tf.function(autograph=False)
    def run():
        return (
            call_tf(tf.sin)(X) + 0,
            jax.jit(call_tf(tf.sin))(X) + 0,
            jax.grad(summed(call_tf(tf.sin)))(X),
        )

    for actual, expected in zip(run(), (np.sin(X), np.sin(X), np.cos(X)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_threads():
    fun = call_tf(fun_tf)
    errors = []

    def work():
        try:
            same(jax.jit(lambda x: fun(x) * 1)(X), fun_jax(X))
            same(jax.grad(summed(fun))(X), jax.grad(summed(fun_jax))(X))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_nothing_is_kept():
    def make():
        weight = tf.Variable(np.ones(3, np.float32))
        fun = call_tf(lambda x: x * weight)
        fun(X)
        jax.grad(summed(fun))(X)
        return weakref.ref(weight)

    kept = make()
    gc.collect()
    assert kept() is None


# Functions whose sizes depend on values: what they return on VALUES, and on as many as there are.
VALUES = np.array([1, -2, 3, -4, 5], np.float32)
OF_UNKNOWN_SIZE = {
    "boolean_mask": lambda x: tf.boolean_mask(x, x > 0),
    "where": lambda x: tf.reshape(tf.cast(tf.where(x > 0), tf.float32), [-1]),
    "unique": lambda x: tf.unique(tf.sign(x) + x * tf.cast(x > 0, x.dtype))[0],
    "boolean_mask with a known size": lambda x: tf.ensure_shape(tf.boolean_mask(x, x > 0), [5]),
    "reshape": lambda x: tf.reshape(tf.boolean_mask(x, x > 0), [5]),
    "slice": lambda x: x[: tf.cast(x[2], tf.int32)],
}


@pytest.mark.filterwarnings("ignore:call_tf runs")
@pytest.mark.parametrize("fun", OF_UNKNOWN_SIZE.values(), ids=OF_UNKNOWN_SIZE)
def test_sizes_that_xla_only_bounds(fun):
    declared = jax.jit(call_tf(fun, output_shape_dtype=jax.ShapeDtypeStruct((5,), np.float32)))
    with pytest.raises(Exception, match=r"(?s)float32\[\d\]|Shape of tensor|is not compatible"):
        declared(VALUES).block_until_ready()
    if fun not in (OF_UNKNOWN_SIZE["reshape"], OF_UNKNOWN_SIZE["boolean_mask with a known size"]):
        expected = fun(tf.constant(VALUES)).numpy()
        shape = jax.ShapeDtypeStruct(expected.shape, np.float32)
        same(jax.jit(call_tf(fun, output_shape_dtype=shape))(VALUES), expected)


@pytest.mark.filterwarnings("error:call_tf runs")
def test_sizes_that_only_xla_needs_to_know_are_compiled():
    def fun(x):
        return tf.reduce_sum(tf.boolean_mask(x, x > 0)) + tf.cast(tf.size(tf.unique(x)[0]), x.dtype)

    same(jax.jit(call_tf(fun))(VALUES), np.float32(14))


def _recorded(record, x):
    result = tf.numpy_function(lambda y: (record(float(y)), y)[1], [x], tf.float32)
    return tf.ensure_shape(result, x.shape)


@pytest.mark.filterwarnings("ignore:call_tf runs")
def test_side_effects_of_a_mapped_function_happen_once():
    seen, variable, xs = [], tf.Variable(0.0), np.arange(1, 5, dtype=np.float32)
    recording = call_tf(lambda x: _recorded(seen.append, x) * 2)
    adding = call_tf(lambda x: variable.assign_add(x))

    def of_values(x):
        seen.append(float(x.numpy()))
        return tf.constant(2 * x.numpy())

    mapped = jax.vmap(recording)
    in_graph = tf.function(convert(mapped), autograph=False)
    runs = (mapped, jax.jit(mapped), convert(mapped), in_graph, jax.vmap(call_tf(of_values)))
    for run in runs:
        seen.clear()
        same(np.asarray(run(xs)), xs * 2)
        assert seen == list(xs)
    for total, run in enumerate((jax.vmap(adding), convert(jax.vmap(adding))), 1):
        same(np.asarray(run(xs))[-1], np.float32(10 * total))
        assert variable.numpy() == 10 * total
