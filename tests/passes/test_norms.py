"""Batch norms go into the weights before them, where these are known. No TensorFlow op is made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes import pipeline
from lowering.passes.fusion.norms import fold_norms
from lowering.passes.literals import convert_literals
from lowering.targets import PORTABLE, TARGETS, TF, Mode
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


# What multiplies and shifts each feature of a layer, in other forms than a batch norm.
FORMS = {
    "factors": lambda y, by, shift: y * by,
    "a number": lambda y, by, shift: y * 0.5,
    "a quotient": lambda y, by, shift: y / by,
    "a factor of a bias": lambda y, by, shift: (y + shift) * by,
    "a difference": lambda y, by, shift: (shift - y * 2) * by,
    "a norm by a quotient": lambda y, by, shift: (y - shift) / jnp.sqrt(by**2 + 1e-3) * by + shift,
    "a norm by an inverse root": lambda y, by, shift: (
        (y - shift) * lax.rsqrt(jnp.asarray(by) ** 2 + 1e-3) * by + shift
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_first", [False, True])
def test_forms_and_orders_of_axes(form, is_first):
    axes, shape = ("NCXY", (6, 1, 1)) if is_first else ("NXYC", (6,))
    x, kernel = normal(2, *((3, 4, 4) if is_first else (4, 4, 3))), normal(2, 2, 3, 6)
    by, shift = abs(normal(*shape)) + 0.5, normal(*shape)

    def fun(x):
        y = lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=(axes, "XYIO", axes)
        )
        return FORMS[form](y, by, shift)

    jaxpr = lowered(fun, x)
    is_shifted = form not in ("factors", "a number", "a quotient")
    assert primitives(jaxpr) == ["conv_general_dilated", *["add"] * is_shifted]
    assert_means(jaxpr, fun, x, rtol=1e-4, atol=1e-4)


def test_mapped_layer():
    x, kernel, statistics = normal(3, 2, 4, 4, 3), normal(2, 2, 3, 5), numbers(4)
    fun = jax.vmap(lambda x: norm(convolved(x, kernel), *statistics))
    jaxpr = lowered(fun, x)
    assert primitives(jaxpr) == ["reshape", "conv_general_dilated", "reshape", "add"]
    assert_means(jaxpr, fun, x, rtol=1e-4, atol=1e-4)


def test_matrix_from_the_left():
    x, kernel, by = normal(3, 8), normal(5, 8), normal(5)
    fun = jax.vmap(lambda x: (kernel @ x + by) * by)
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
    "weights that others use": (
        lambda x: norm(x @ jnp.asarray(KERNEL), *STATISTICS) + jnp.sum(jnp.sin(KERNEL)),
        (X,),
    ),
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


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("largest", [1.0, 1e-7, 1e6])
def test_weights_stay_in_16_bits(dtype, largest):
    rng = np.random.default_rng(0)
    w = jnp.asarray(rng.normal(size=(64, 48)), dtype)
    factor = (largest * rng.uniform(0.5, 1, 48)).astype(np.float32)
    offset = rng.normal(size=48).astype(np.float32)

    def fun(x):
        return (x @ w).astype(np.float32) * factor + offset

    x = jax.ShapeDtypeStruct((3, 64), dtype)
    legal = pipeline.legalized(jax.make_jaxpr(fun)(x), TARGETS["tflite"])
    folded = fold_norms(convert_literals(legal))
    widened = [e for e in folded.eqns if e.primitive.name == "widen"]
    # Float16 has more digits than bfloat16, but a smaller range.
    stored = {1.0: np.float16, 1e-7: dtype, 1e6: dtype}[largest]
    is_kept = largest == 1.0 or dtype == jnp.bfloat16
    assert [e.invars[0].aval.dtype for e in widened] == [stored] * is_kept
    assert "mul" not in [e.primitive.name for e in folded.eqns]


def test_a_factor_behind_a_bias_of_two_axes():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(6, 2, 3)).astype(np.float32)
    bias = rng.normal(size=(2, 3)).astype(np.float32)

    def fun(x):
        return (jnp.einsum("bi,ijk->bjk", x, w) + bias) / np.float32(np.sqrt(3))

    x = rng.normal(size=(4, 6)).astype(np.float32)
    folded = fold_norms(jax.make_jaxpr(fun)(x))
    names = [e.primitive.name for e in folded.eqns]
    assert "div" not in names and names.count("add") == 1
    (actual,) = jax.core.eval_jaxpr(folded.jaxpr, folded.consts, x)
    np.testing.assert_allclose(actual, fun(x), rtol=1e-5, atol=1e-6)


def test_a_factor_that_python_computes_is_not_computed_ahead():
    calls = []

    def factor(x):
        calls.append(x)
        return x

    w = normal(6, 5)

    def fun(x):
        one = np.float32(1)
        return (x @ w) * jax.pure_callback(factor, jax.ShapeDtypeStruct((), np.float32), one)

    folded = fold_norms(jax.make_jaxpr(fun)(normal(4, 6)))
    assert "mul" in [e.primitive.name for e in folded.eqns] and not calls
