"""Functions that consumers lack, or have with few digits, are right in their runtimes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering
from lowering import export
from lowering.export import runtimes
from lowering.export.flat import flat_entry

X = np.array(
    [1e-30, -1e-9, 1e-7, -1e-4, 0.1, 0.5, -0.9, 1, 1.5, 2, -3, 3.9, 4, 5, 1e10], np.float32
)


@pytest.mark.parametrize("consumer", ["tflite", "onnx", "tfjs"])
@pytest.mark.parametrize("fun", [lax.erf, lax.erfc], ids=["erf", "erfc"])
def test_digits(consumer, fun):
    converted = lowering.convert(fun, target=consumer, with_gradient=False)
    entry = flat_entry(converted, [X], for_consumer=True)
    expected = [getattr(math, fun.__name__)(float(x)) for x in X]
    for (actual,) in runtimes.run(consumer, entry).values():
        np.testing.assert_allclose(actual, expected, rtol=8e-7, atol=2e-38)
        assert np.all(np.abs(actual) <= 2)
        if fun is lax.erf:
            assert np.all(np.abs(actual) <= 1)


# Tiny numbers, some in between, and such whose exponentials overflow or vanish.
NUMBERS = [1e-20, 1e-8, 1e-5, 1e-3, 0.1, 0.7, 5.0, 30.0, 100.0]
FUNCTIONS = {
    **{name: getattr(lax, name) for name in ("sin", "tanh", "expm1", "asinh", "atan", "erf")},
    **{name: getattr(jax.nn, name) for name in ("softplus", "log_sigmoid", "selu")},
    "log1p": lambda x: lax.log1p(lax.abs(x)),
    "inside": lambda x: [f(x * 0.009) for f in (lax.tan, lax.sinh, lax.asin, lax.atanh)],
    "quotient": lambda x: lax.expm1(x) / x,
}


@pytest.mark.parametrize("consumer", ["tflite", "onnx", "tfjs"])
def test_tiny_and_large_numbers(consumer):
    x = np.array([*NUMBERS, *(-n for n in NUMBERS)], np.float32)

    def fun(x):
        return {name: fun(x) for name, fun in FUNCTIONS.items()}

    entry = flat_entry(lowering.convert(fun, target=consumer, with_gradient=False), [x])
    expected = jax.tree.leaves(jax.jit(fun)(x))
    for results in runtimes.run(consumer, entry).values():
        for actual, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=2e-38)


def test_a_gelu_of_tfjs_has_the_op_that_tfjs_has():
    def gelu(x):
        return jax.nn.gelu(x, approximate=False)

    entry = flat_entry(lowering.convert(gelu, target="tfjs", with_gradient=False), [X])
    ops = [node.op for node in entry.concrete.graph.as_graph_def().node]
    assert ops.count("Erf") == 1
    assert "RealDiv" not in ops


# Zeros, infinities, and numbers whose quotients overflow or vanish.
SIDES = np.array([0, 1, -1, 1e-30, -1e30, 3e38, np.inf, -np.inf], np.float32)


@pytest.mark.parametrize("consumer", ["tflite", "onnx", "tfjs"])
def test_angles_of_all_quadrants(consumer):
    y, x = (side.reshape(-1) for side in np.meshgrid(SIDES, SIDES))
    entry = flat_entry(lowering.convert(lax.atan2, target=consumer, with_gradient=False), [y, x])
    expected = np.arctan2(y, x)
    for (actual,) in runtimes.run(consumer, entry).values():
        # Natural numerics leave the sign of zero open, and that of half a turn with it.
        actual = np.where(y == 0, np.abs(actual), actual)
        np.testing.assert_allclose(actual, np.where(y == 0, np.abs(expected), expected), rtol=1e-6)


@pytest.mark.parametrize(
    "fun, most",
    [(jnp.expm1, 5), (jnp.log1p, 8), (jnp.arctan2, 13), (jnp.logaddexp, 17)],
)
def test_functions_that_onnx_lacks_have_few_nodes(fun, most):
    onnx = pytest.importorskip("onnx")
    args = [np.abs(X)] * (1 if fun in (jnp.expm1, jnp.log1p) else 2)
    model = onnx.load_from_string(bytes(export.to_onnx(fun, args)))
    assert len(model.graph.node) <= most
