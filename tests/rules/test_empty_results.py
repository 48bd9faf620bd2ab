"""Windows of which an array of symbolic size may have room for none."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering

IMAGES = ("NHWC", "HWIO", "NHWC")


def filters(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def convolution(x):
    return lax.conv_general_dilated(
        x, filters(3, 3, 2, 4), (1, 1), "VALID", dimension_numbers=IMAGES
    )


def dilated(x):
    return lax.conv_general_dilated(
        x,
        filters(3, 2, 2, 4),
        (2, 1),
        [(1, 0), (0, 0)],
        rhs_dilation=(2, 1),
        dimension_numbers=IMAGES,
    )


def depthwise(x):
    return lax.conv_general_dilated(
        x,
        filters(3, 3, 1, 4),
        (2, 2),
        "VALID",
        feature_group_count=2,
        dimension_numbers=IMAGES,
    )


def of_integers(x):
    return convolution(x.astype(np.int32).astype(np.float32))


def max_pool(x):
    return lax.reduce_window(x, -np.inf, lax.max, (1, 4, 4, 1), (1, 2, 1, 1), "VALID")


def sum_pool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 4, 3, 1), (1, 1, 2, 1), "VALID")


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("fun", [convolution, dilated, depthwise, of_integers, max_pool, sum_pool])
def test_images_smaller_than_windows(fun, jit_compile):
    converted = lowering.convert(fun, polymorphic_shapes="(b, h, w, 2)")
    signature = [tf.TensorSpec([None, None, None, 2])]
    graph = tf.function(converted, signature, autograph=False, jit_compile=jit_compile)
    for height, width in ((1, 5), (2, 5), (3, 3), (4, 1), (6, 6)):
        x = np.random.default_rng(1).normal(size=(2, height, width, 2)).astype(np.float32)
        expected = jax.jit(fun)(x)
        actual = graph(x)
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fun", [convolution, depthwise, max_pool])
def test_batches_without_images(fun):
    converted = lowering.convert(fun, polymorphic_shapes="(b - 1, 6, 6, 2)")
    graph = tf.function(converted, [tf.TensorSpec([None, 6, 6, 2])], autograph=False)
    for batch in (0, 2):
        x = np.ones((batch, 6, 6, 2), np.float32)
        np.testing.assert_allclose(graph(x), jax.jit(fun)(x), rtol=1e-5)
