"""Sums whose terms are equal, or are once the optimizer has left something out, in loops.

See `grappler.quirks.sums_of_equal_terms_in_loops`.
"""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from harnesses.arguments import name
from lowering import convert

FORMS = {
    "1 + (x + x)": lambda x: 1 + (x + x),
    "x + 1 + x": lambda x: x + 1 + x,
    "x - 1 + x + 2": lambda x: x - 1 + x + 2,
    "2 - x + x + x": lambda x: 2 - x + x + x,
    "(x + 3) + (x + 3)": lambda x: (x + 3) + (x + 3),
    "x + y + x": lambda x: x + jnp.flip(x) + x,
    "3 x + 3 x + 1": lambda x: 3 * x + 3 * x + 1,
    "1 x + x": lambda x: 1 * x + x,
    "1 x + 1 x + 1": lambda x: 1 * x + 1 * x + 1,
    "a choice": lambda x: jnp.where(np.ones(x.shape, np.bool_), x, x + 1) + x + 1,
    "a view": lambda x: x.reshape(2, 2).reshape(4) + x + 1,
    "a transpose": lambda x: x.reshape(2, 2).T.T.reshape(4) + x,
    "whole slices": lambda x: x[:4] + lax.dynamic_slice(x, (0,), (4,)) + 1,
    "elements": lambda x: x[:1] + x[:1] + x,
}
DTYPES = [np.int8, np.uint16, np.int32, np.float32, ml_dtypes.bfloat16, np.complex64]


def _repeated(form):
    def loop(x):
        def step(state):
            return form(state[0]).astype(x.dtype), state[1] + 1

        return lax.while_loop(lambda state: state[1] < 2, step, (x, 0))[0]

    return loop


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize("target", ["xla", "tf", "portable", "tflite", "onnx", "tfjs"])
def test_sums_with_equal_terms(target, dtype):
    def fun(x):
        return {form: _repeated(fun)(x) for form, fun in FORMS.items()}

    x = np.array([0, 1, 1, 5], dtype)
    expected = jax.jit(fun)(x)
    converted = convert(fun, target=target, with_gradient=False)
    for form, actual in tf.function(converted, autograph=False)(x).items():
        np.testing.assert_array_equal(actual, expected[form], form, strict=True)


@pytest.mark.parametrize("dtype", [*DTYPES, np.uint8, np.bool_], ids=name)
@pytest.mark.parametrize("target", ["xla", "tf", "portable"])
def test_equal_results_of_the_steps_of_a_short_loop(target, dtype):
    """The loop is unrolled, and TensorFlow makes a Tile of a stack of equal tensors."""

    def fun(x):
        return lax.scan(lambda carry, _: (carry, carry[::-1]), x, None, length=2)[1]

    x = np.array([0, 1, 1, 5]).astype(dtype)
    converted = tf.function(convert(fun, target=target), autograph=False)
    np.testing.assert_array_equal(converted(x), jax.jit(fun)(x), strict=True)
