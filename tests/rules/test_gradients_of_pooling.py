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


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("size, strides", [((2, 2), (2, 2)), ((3, 2), (2, 1)), ((1, 3), (1, 1))])
def test_maxima(size, strides, padding, mode):
    """The first of equal elements gets the gradient."""
    fun = gradient(nn.max_pool, size, strides, padding)
    converted = in_mode(lowering.convert(fun, target="portable"), mode)
    np.testing.assert_allclose(converted(IMAGES), fun(IMAGES), rtol=1e-5, atol=1e-6)
    if mode == "graph":
        ops = op_types(graph_of(fun, IMAGES, target="portable"))
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
