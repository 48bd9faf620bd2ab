"""Callbacks run when the graph does, and where it does."""

import jax
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import convert


def test_a_callback_in_a_branch_that_is_not_taken():
    """TensorFlow's optimizer runs stateless ops on constants, whether or not they are needed."""
    called = []

    def complain(code):
        called.append(code)
        raise AssertionError("it is called")

    def fun(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return lax.cond(x[0] < 0, lambda: jax.pure_callback(complain, shape, 3), lambda: x + 1)

    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(tf.function(convert(fun), autograph=False)(x), x + 1)
    assert not called
