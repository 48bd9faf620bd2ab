"""Dimensions whose sizes are not known when a function is lowered."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert
from tests.helpers import MODES, in_mode


@pytest.mark.parametrize("mode", MODES)
def test_polymorphic_shapes(mode):
    fun_tf = in_mode(
        convert(lambda x, y: (x.reshape(-1), x.sum(0) * y.shape[0]), polymorphic_shapes="(b, ...)"),
        mode,
        input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 2])],
    )
    for batch in (1, 5):
        x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
        flat, total = fun_tf(x, np.ones((batch, 2), np.float32))
        np.testing.assert_array_equal(flat, x.reshape(-1))
        np.testing.assert_array_equal(total, x.sum(0) * batch)


def test_polymorphic_shapes_of_some_arguments():
    fun_tf = convert(
        lambda x, ys: x + ys[0] + ys[1].sum(), polymorphic_shapes=("(b,)", ["b", None])
    )
    result = fun_tf(np.ones(2, np.float32), [np.ones(2, np.float32), np.ones(3, np.float32)])
    np.testing.assert_array_equal(result, [5, 5])


def test_polymorphic_gradient():
    fun_tf = convert(lambda x: jnp.mean(x**2), polymorphic_shapes="(b, _)")

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 2])])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun_tf(x)
        return tape.gradient(y, x)

    x = np.float32([[1, 2], [3, 4], [5, 6]])
    np.testing.assert_allclose(gradient(x), x / 3, rtol=1e-6)


def test_polymorphic_constraints():
    convert_one = functools.partial(convert, lambda x: x[:4], polymorphic_shapes="(b,)")
    x = np.arange(6, dtype=np.float32)
    fun_tf = convert_one(polymorphic_constraints=["b >= 4"])
    np.testing.assert_array_equal(fun_tf(x), x[:4])


def test_shape_unknown_to_tensorflow():
    fun_tf = tf.function(convert(lambda x: x), autograph=False)
    with pytest.raises(ValueError, match="name its dimensions with polymorphic_shapes"):
        fun_tf.get_concrete_function(tf.TensorSpec([None], tf.float32))
    with pytest.raises(ValueError, match="unknown rank"):
        fun_tf.get_concrete_function(tf.TensorSpec(None, tf.float32))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("(b, c)", "polymorphic_shapes '\\(b, c\\)' for args\\[0\\]"),
        ("(5,)", "polymorphic_shapes '\\(5,\\)' for args\\[0\\]"),
        (("b", "b"), "has 2 items for 1 positional argument$"),
        ({"x": "b"}, "a specification, or a sequence of them for the positional arguments, not {"),
        ([{"x": "b"}], "(?s)pytree prefix.*polymorphic_shapes\\[0\\]"),
        ("(b", "a parenthesis is not closed"),
        ("(b))", "closed that has not been opened"),
    ],
)
def test_polymorphic_shapes_that_do_not_fit(spec, message):
    with pytest.raises(ValueError, match=message):
        convert(lambda x: x, polymorphic_shapes=spec)(np.ones(3, np.float32))


@pytest.mark.parametrize(("spec", "sizes"), [(("b", "b"), (2, 3)), (("b", "2*b"), (2, 3))])
def test_sizes_that_contradict_each_other(spec, sizes):
    fun_tf = convert(lambda x, y: (x, y), polymorphic_shapes=spec)
    with pytest.raises(ValueError, match=r"has size 3, not \d"):
        fun_tf(*(np.ones(size, np.float32) for size in sizes))


@pytest.mark.parametrize("variable", ["_b", "é", "größe", "名"])
def test_variables_that_are_no_names_of_ops(variable):
    spec = tf.TensorSpec([None, 3], tf.float32)
    fun = convert(lambda x: x.reshape(-1) + x.shape[0], polymorphic_shapes=f"({variable}, _)")
    fun_tf = tf.function(fun, autograph=False, input_signature=[spec])
    np.testing.assert_array_equal(fun_tf(np.ones((2, 3), np.float32)), np.full(6, 3))


def test_a_multiple_of_a_dimension():
    fun_tf = convert(lambda x: x.reshape(2, -1), polymorphic_shapes="2*b")
    assert fun_tf(np.ones(6, np.float32)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"2\*b has size 5"):
        fun_tf(np.ones(5, np.float32))


def test_dimensions_that_cannot_be_solved():
    with pytest.raises(ValueError, match="cannot solve for the dimension variables"):
        convert(lambda x: x, polymorphic_shapes="(b + c,)")(np.ones(3, np.float32))
