"""Batch norms go into the weights before them, where these are known. No TensorFlow op is made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes import pipeline
from lowering.targets import PORTABLE, TF, Mode
from tests.passes.meanings import assert_means
from tests.passes.programs import primitives, traced

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def numbers(rank, features=5):
    """Numbers for the last of some axes."""
    mean, variance, *others = (normal(*[1] * (rank - 1), features) for _ in range(4))
    return [mean, abs(variance), *others]


def norm(x, mean, variance, scale, offset):
    return (x - mean) * (lax.rsqrt(jnp.asarray(variance) + 1e-3) * scale) + offset


def convolved(x, kernel, groups=1):
    """A convolution of any rank, features last."""
    rank = x.ndim - 2
    space = "XYZ"[:rank]
    names = (f"N{space}C", f"{space}IO", f"N{space}C")
    return lax.conv_general_dilated(
        x, kernel, (1,) * rank, "SAME", dimension_numbers=names, feature_group_count=groups
    )


def lowered(fun, *args, target=PORTABLE):
    jaxpr, functions = pipeline.whole_program(traced(fun, *args))
    return pipeline.optimized(jaxpr, Mode.GRAPH, functions, target)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolutions(rank, has_bias):
    x, kernel, bias = normal(2, *[4] * rank, 3), normal(*[2] * rank, 3, 5), normal(5)
    statistics = numbers(rank + 2)

    def fun(x):
        y = convolved(x, kernel)
        return norm(y + bias if has_bias else y, *statistics)

    jaxpr = lowered(fun, x)
    assert primitives(jaxpr) == ["conv_general_dilated", "add"]
    assert_means(jaxpr, fun, x, rtol=1e-4, atol=1e-4)


def test_grouped_convolution():
    x, kernel, statistics = normal(2, 4, 4, 6), normal(2, 2, 2, 6), numbers(4, 6)

    def fun(x):
        return norm(convolved(x, kernel, groups=3), *statistics)

    jaxpr = lowered(fun, x)
    assert primitives(jaxpr) == ["conv_general_dilated", "add"]
    assert_means(jaxpr, fun, x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_dense_layers(shape, has_bias):
    x, kernel, bias, statistics = normal(*shape), normal(8, 5), normal(5), numbers(len(shape))

    def fun(x):
        y = x @ kernel
        return norm(y + bias if has_bias else y, *statistics)

    jaxpr = lowered(fun, x)
    assert primitives(jaxpr) == ["dot_general", "add"]
    assert_means(jaxpr, fun, x, rtol=1e-4, atol=1e-4)


def test_several_features_of_the_weights():
    x, kernel, statistics = normal(3, 8), normal(8, 2, 5), numbers(3)

    def fun(x):
        return norm(jnp.tensordot(x, kernel, 1), *statistics)

    jaxpr = lowered(fun, x)
    assert primitives(jaxpr) == ["dot_general", "add"]
    assert_means(jaxpr, fun, x, rtol=1e-4, atol=1e-4)


X, KERNEL, STATISTICS = normal(3, 8), normal(8, 5), numbers(2)

# Where the norm stays.
OTHERS = {
    "weights that are arguments": (lambda x, w: norm(x @ w, *STATISTICS), (X, KERNEL)),
    "statistics that are arguments": (
        lambda x, mean: norm(x @ KERNEL, mean, *STATISTICS[1:]), (X, STATISTICS[0])
    ),
    "a result that others use": (lambda x: norm(y := x @ KERNEL, *STATISTICS) * y, (X,)),
    "a sum of two layers": (lambda x: norm(x @ KERNEL + jnp.sin(x) @ KERNEL, *STATISTICS), (X,)),
    "no layer": (lambda x: norm(jnp.sin(x), *STATISTICS), (normal(3, 5),)),
    "features that are multiplied from the left": (
        lambda x: norm(KERNEL.T @ x, *STATISTICS), (normal(8, 5),)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_what_stays(case):
    fun, args = OTHERS[case]
    jaxpr = lowered(fun, *args)
    assert "batch_norm" in primitives(jaxpr)
    assert_means(jaxpr, fun, *args, rtol=1e-4, atol=1e-4)


def test_exact_targets_keep_the_order_of_operations():
    jaxpr = lowered(lambda x: norm(x @ KERNEL, *STATISTICS), X, target=TF)
    assert primitives(jaxpr).count("mul") == 2


def test_a_batch_of_one():
    """Statistics of the input itself are no known ones."""

    def fun(x):
        mean = x.mean((0, 1), keepdims=True)
        return norm(x, mean, x.var((0, 1), keepdims=True), *STATISTICS[2:])

    x = normal(1, 4, 5)
    assert_means(lowered(fun, x), fun, x, rtol=1e-4, atol=1e-4)
    assert jax.jit(fun)(x).shape == x.shape
