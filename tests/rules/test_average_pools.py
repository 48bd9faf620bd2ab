"""Average pools that leave their padding out, of any rank and with symbolic sizes."""

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering


def pool(x, window):
    """A mean over windows, of the elements that are in the array."""
    sizes = (1, *window, 1)
    ones = jnp.ones((1, *x.shape[1:-1], 1), x.dtype)
    total, count = (lax.reduce_window(a, 0.0, lax.add, sizes, sizes, "SAME") for a in (x, ones))
    return total / count


@pytest.mark.parametrize("target", ["tf", "portable", "tflite", "onnx", "tfjs"])
@pytest.mark.parametrize(
    ("shape", "window", "symbolic"),
    [
        ((2, 9, 3), (2,), None),
        ((2, 9, 3), (2,), "b, ..."),
        ((2, 9, 3), (2,), "b, n, _"),
        ((2, 7, 5, 3), (2, 3), None),
        ((2, 7, 5, 3), (2, 3), "b, ..."),
        ((2, 7, 5, 3), (2, 3), "b, h, w, _"),
        ((2, 5, 6, 7, 2), (2, 2, 3), None),
        ((0, 9, 3), (2,), None),
    ],
)
def test_means_of_present_elements(shape, window, symbolic, target):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    converted = lowering.convert(
        lambda x: pool(x, window), target=target, polymorphic_shapes=symbolic and [symbolic]
    )
    found = tf.function(converted, autograph=False)(x)
    np.testing.assert_allclose(found, pool(x, window), rtol=1e-5, atol=1e-6)
