"""Runs exported functions in Chromium; `make demo-test` runs these tests, which need it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from harnesses.browser import RUNTIMES, Browser
from lowering.export.entries import entry
from lowering.export.flat import flat_entry
from lowering.targets import ONNX, TFJS, TFLITE


@pytest.fixture(scope="module")
def runner():
    with Browser() as runner:
        yield runner


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_exported_functions_run_in_each_runtime(runner, runtime):
    def fun(x, n):
        return {"product": jnp.tanh(x) @ x.T, "sum": n + n[0], "number": n.astype(jnp.float32)}

    inputs = (np.float32([[0.5, -1, 2], [3, 0.25, -4]]), np.int32([1, -2, 70000]))
    target = {"litert": TFLITE, "onnxruntime": ONNX}.get(runtime, TFJS)
    made = entry(fun, inputs, target)
    run = runner.run_entry(runtime, made, times=3)
    assert len(run.times) == 3
    for name, expected in zip(made.outputs, made.reference(*inputs), strict=True):
        assert run.outputs[name].dtype == expected.dtype
        np.testing.assert_allclose(run.outputs[name], expected, rtol=1e-5)


@pytest.mark.parametrize("runtime", [name for name in RUNTIMES if name != "litert"])
def test_unsigned_integers(runner, runtime):
    """TF.js keeps their bits; LiteRT for the web has no type for them."""
    target = ONNX if runtime == "onnxruntime" else TFJS
    made = entry(jnp.negative, (np.uint32([1, 70000]),), target)
    (result,) = runner.run_entry(runtime, made).outputs.values()
    np.testing.assert_array_equal(result.view(np.uint32), np.uint32([2**32 - 1, 2**32 - 70000]))


def _normal(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _pointwise(x, filters):
    return lax.conv_general_dilated(
        x, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


_ROWS = np.int32([2, 0, 2, 1, 2])
ODD = {
    "product": (jnp.matmul, (_normal(3, 5), _normal(5, 3))),
    "product of transposes": (lambda x, y: x.T @ y.T, (_normal(5, 3), _normal(3, 5))),
    "products": (functools.partial(jnp.einsum, "bij,bkj->bik"), (_normal(2, 3, 5),) * 2),
    "convolution": (_pointwise, (_normal(1, 5, 5, 3), _normal(1, 1, 3, 5))),
    "sum of segments": (lambda x: jax.ops.segment_sum(x, _ROWS, 4), (_normal(5, 3),)),
    "scatter": (lambda x: jnp.ones((4, 3)).at[_ROWS].add(x), (_normal(5, 3),)),
}


@pytest.mark.parametrize(
    ("name", "is_symbolic"),
    [*((name, False) for name in ODD), ("product", True), ("products", True)],
)
def test_odd_sizes_by_webgl(runner, name, is_symbolic):
    """Numbers that are computed beside the last one of an odd number are none of the operands."""
    fun, operands = ODD[name]

    def of_computed(*xs):
        return fun(*map(jnp.exp, xs))

    letters = {3: "a", 5: "b"}
    shapes = [", ".join(letters.get(n, "_") for n in x.shape) for x in operands]
    made = entry(of_computed, operands, TFJS, polymorphic_shapes=shapes if is_symbolic else None)
    (result,) = runner.run_entry("tfjs-webgl", made).outputs.values()
    np.testing.assert_allclose(result, jax.jit(of_computed)(*operands), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("runtime", ["tfjs-webgl", "tfjs-wasm", "tfjs-cpu"])
def test_rows_that_are_masked(runner, runtime, name):
    """A row that has nothing but the smallest number, one with others, and one of tiny numbers."""
    lowest = np.finfo(np.float32).min
    x = np.float32([[lowest] * 3, [lowest, 1, 2], [1e-30, -1e-30, 0], [-1e30, -2e30, lowest]])
    made = entry(getattr(jax.nn, name), (x,), TFJS)
    (result,) = runner.run_entry(runtime, made).outputs.values()
    np.testing.assert_allclose(result, made.reference(x)[0], rtol=1e-5)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_booleans(runner, runtime):
    target = {"litert": TFLITE, "onnxruntime": ONNX}.get(runtime, TFJS)
    made = entry(jnp.logical_not, (np.array([True, False]),), target)
    if runtime == "litert":
        # LiteRT for the web has no type for them, neither for inputs nor for outputs.
        with pytest.raises(RuntimeError, match="Element type BOOL is not supported"):
            runner.run_entry(runtime, made)
    else:
        (result,) = runner.run_entry(runtime, made).outputs.values()
        np.testing.assert_array_equal(result, [False, True])


def test_models_that_a_runtime_does_not_take_are_errors(runner, tmp_path):
    (tmp_path / "model").write_bytes(b"no model")
    with pytest.raises(RuntimeError, match="onnxruntime failed"):
        runner.run("onnxruntime", tmp_path / "model", {})
    with pytest.raises(ValueError, match="runtime is one of tfjs-webgl, "):
        runner.run("tfjs", tmp_path, {})


def test_a_failure_harms_no_later_run(runner):
    """TF.js by wasm multiplies no matrices of integers, and a failure may spoil its memory."""
    matrix = np.ones((2, 2), np.int32)
    with pytest.raises(RuntimeError, match="BatchMatMul"):
        runner.run_entry("tfjs-wasm", flat_entry(tf.matmul, [matrix, matrix], True))
    x = np.arange(3, dtype=np.float32)
    (result,) = runner.run_entry("tfjs-wasm", flat_entry(tf.cumsum, [x], True)).outputs.values()
    np.testing.assert_array_equal(result, [0, 1, 3])
