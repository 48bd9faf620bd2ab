"""Gradients of pooling have few ops on natural targets, and are those of JAX."""

import flax.linen as nn
import jax
import numpy as np
import pytest

import lowering
from tests.helpers import graph_of, in_mode, op_types

# Whole numbers, so that many elements of a window are equal.
IMAGES = np.random.default_rng(0).integers(-2, 3, (2, 7, 8, 3)).astype(np.float32)


def gradient(pool, *window):
    return jax.grad(lambda x: (pool(x, *window) ** 2).sum())


MASKED = IMAGES.copy()
MASKED[:, :4, :5] = -np.inf


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("images", [IMAGES, MASKED], ids=["finite", "masked"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("size, strides", [((2, 2), (2, 2)), ((3, 2), (2, 1)), ((1, 3), (1, 1))])
def test_maxima(size, strides, padding, images, mode):
    """The first of equal elements gets the gradient, be it padding beside negative infinity."""
    fun = jax.grad(lambda x, w: (nn.max_pool(x, size, strides, padding) * w).sum())
    weights = np.random.default_rng(1).normal(
        size=nn.max_pool(images, size, strides, padding).shape
    )
    args = images, weights.astype(np.float32)
    with np.errstate(invalid="ignore"):
        expected = fun(*args)
    converted = in_mode(lowering.convert(fun, target="portable"), mode)
    np.testing.assert_allclose(converted(*args), expected, rtol=1e-5, atol=1e-6)
    if mode == "graph" and padding == "VALID":
        ops = op_types(graph_of(fun, *args, target="portable"))
        assert "MaxPoolGrad" in ops and "TensorScatterAdd" not in ops


@pytest.mark.parametrize("target", ["portable", "tf"])
@pytest.mark.parametrize("size", [(2, 2), (3, 3), (1, 4), (7, 8)])
def test_means_of_windows_side_by_side(size, target):
    """Each element is repeated; rows and columns that are left over get zeros."""
    fun = gradient(nn.avg_pool, size, size, "VALID")
    converted = in_mode(lowering.convert(fun, target=target), "graph")
    np.testing.assert_allclose(converted(IMAGES), fun(IMAGES), rtol=1e-5, atol=1e-6)
    ops = op_types(graph_of(fun, IMAGES, target=target))
    assert ops.count("AvgPool") == (1 if target == "portable" else 2)


@pytest.mark.parametrize("size, strides", [((3, 3), (2, 2)), ((2, 2), (3, 3)), ((2, 2), (1, 2))])
def test_means_of_other_windows(size, strides):
    """Where windows overlap or leave gaps, elements are summed."""
    fun = gradient(nn.avg_pool, size, strides, "VALID")
    converted = in_mode(lowering.convert(fun, target="portable"), "graph")
    np.testing.assert_allclose(converted(IMAGES), fun(IMAGES), rtol=1e-5, atol=1e-6)
