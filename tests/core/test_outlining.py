"""Functions of the graph are made once, and only so many are kept."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert
from lowering.ops.outlining import Functions
from tests.helpers import MODES, in_mode

AVAL = jax.ShapeDtypeStruct((2,), np.float32)


def call(functions, key, x, traced):
    def lower(variables, x):
        traced.append(key)
        return [tf.convert_to_tensor(x) * 2]

    return functions.call(key, lower, [x], [AVAL], {})


def test_a_function_is_made_once_for_all_tensors():
    functions, traced = Functions(), []
    for x in (tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])):
        (result,) = call(functions, "double", x, traced)
        np.testing.assert_array_equal(result, 2 * x)
    assert traced == ["double"]


def test_known_operands_are_part_of_a_function():
    functions, traced = Functions(), []
    for x in (np.float32([1, 2]), np.float32([3, 4]), np.float32([1, 2])):
        (result,) = call(functions, "double", x, traced)
        np.testing.assert_array_equal(result, 2 * x)
    assert len(traced) == len(functions) == 2


def test_the_function_that_was_called_the_longest_ago_is_forgotten():
    functions, traced, x = Functions(limit=2), [], tf.constant([1.0, 2.0])
    for key in "abacab":
        call(functions, key, x, traced)
    assert len(functions) == 2
    assert traced == ["a", "b", "c", "b"]


@jax.jit
def repeated_inverse(x):
    for _ in range(4):
        x = jnp.linalg.inv(x) + jnp.eye(2)
    return x


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.scan(lambda c, _: (jnp.linalg.inv(c) + jnp.eye(2), None), x, length=3)[0],
        lambda x: repeated_inverse(repeated_inverse(x)),
    ],
    ids=["loop", "call"],
)
def test_functions_with_ops_that_tensorflow_cannot_differentiate(fun, mode):
    """The gradient is JAX's; none is made for `Lu`, which has none in TensorFlow."""
    x = np.float32([[2, 1], [0, 3]])

    def gradient(x, **options):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(convert(fun, **options)(x) ** 2)
        return tape.gradient(y, x)

    actual = in_mode(gradient, mode)(tf.constant(x))
    expected = jax.grad(lambda x: (fun(x) ** 2).sum())(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(LookupError, match="with_gradient=False"):
        in_mode(functools.partial(gradient, with_gradient=False), mode)(tf.constant(x))
