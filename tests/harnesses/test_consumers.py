"""Cells of natural targets and of consumers."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.interpreters import mlir

from harnesses import cell, compare
from harnesses.cell import MODES, RUNTIME, Outcome, Verdict
from harnesses.harness import Harness
from harnesses.natural import natural
from harnesses.variants import MORE_AXES
from lowering.registry import rule

X = np.array([-1.5, -0.0, 0.0, np.nan, 2.0], np.float32)


def run(harness, **filters):
    return list(cell.run(harness, cell.cells_of(harness, **filters)))


def test_arguments_of_natural_harnesses_have_no_nan():
    harness = natural(Harness("sin", "case", lax.sin, (X, np.arange(3))))
    first, second = harness.make_args()
    np.testing.assert_array_equal(first, [-1.5, 0, 0, 1, 2])
    np.testing.assert_array_equal(second, np.arange(3))


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.complex64, np.int32])
def test_zeros_of_either_sign_are_equal_and_nan_is_anything(dtype):
    exact = Harness("sin", "case", lax.sin, comparer=compare.exact)
    comparer = natural(exact).comparer
    expected = np.array([0, -1, 1], dtype)
    assert comparer([expected], [np.array([-0.0, -1, 1]).astype(dtype)], []).equal
    assert not comparer([expected], [np.array([0, -1, 2]).astype(dtype)], []).equal
    if dtype != np.int32:
        with_nan = np.array([0, np.nan, 1]).astype(dtype)
        assert comparer([with_nan], [expected], []).equal
        assert not comparer([expected], [with_nan], []).equal


def test_modes():
    harness = Harness("sin", "case", lax.sin, (X,))
    assert {c.mode for c in cell.cells_of(harness, targets=["tf"])} == set(MODES)
    assert {c.mode for c in cell.cells_of(harness, targets=["onnx"])} == {"graph", RUNTIME}
    assert not cell.cells_of(harness, targets=["onnx"], variant="vmap")


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.complex128])
def test_harnesses_of_64_bits_run_where_the_runtime_has_them(dtype):
    x = np.array([1, 2, 3]).astype(dtype)
    # A number that 32 bits do not hold.
    harness = Harness("mul", "case", lambda x: x * x.dtype.type(2**31 + 1), (x,))
    with jax.enable_x64(True):
        for target in ("tflite", "tfjs"):
            assert not cell.cells_of(harness, targets=[target])
        results = run(harness, targets=["onnx"])
        results += run(harness, modes=[RUNTIME], targets=["onnx"], variant=MORE_AXES)
        assert len(results) == 3
        for result in results:
            assert result.verdict == Verdict.EQUAL, result


@pytest.mark.parametrize("consumer", ["tflite", "onnx", "tfjs"])
def test_runtimes(consumer):
    """The results are in JAX's order, in JAX's dtypes of 32 bits."""

    def fun(x, n):
        return [x * i for i in range(11)] + [n + 1, x > 0, jnp.where(n > 1, n, 0)]

    args = (X, np.array([1, 2, 3], np.int32))
    for result in run(Harness("mul", "case", fun, args), targets=[consumer]):
        assert result.verdict == Verdict.EQUAL, result


wrong_cos = jex_core.Primitive("wrong_cos")
wrong_cos.def_abstract_eval(lambda x: x)
mlir.register_lowering(wrong_cos, mlir.lower_fun(jnp.cos, multiple_results=False))


@rule("wrong_cos")
def _wrong_cos(ctx, x):
    return tf.cos(x) * 1.001


@pytest.mark.parametrize("consumer", ["tflite", "onnx", "tfjs"])
def test_a_runtime_that_computes_something_else(consumer):
    harness = Harness("wrong_cos", "case", wrong_cos.bind, (X,), comparer=compare.close())
    for result in run(harness, targets=[consumer]):
        assert result.outcome == Outcome.DIFFERENT


@pytest.mark.parametrize("consumer", ["tflite", "onnx", "tfjs"])
def test_small_numbers_count_beside_large_ones(consumer):
    harness = Harness(
        "wrong_cos",
        "case",
        lambda x: jnp.where(x > 1, 1e9, wrong_cos.bind(x)),
        (X,),
        comparer=compare.close(),
    )
    for result in run(harness, targets=[consumer]):
        assert result.outcome == Outcome.DIFFERENT


def test_a_comparison_for_natural_targets_alone():
    twice = compare.close(rtol=1.0)
    harness = Harness("wrong_cos", "case", wrong_cos.bind, (X,), compare.close(), natural=twice)
    for target, outcome in (("tf", Outcome.DIFFERENT), ("onnx", Outcome.EQUAL)):
        assert {result.outcome for result in run(harness, targets=[target])} == {outcome}


def test_what_a_runtime_lacks_is_a_lowering_error():
    def factorize(x):
        return lax.fft(x, lax.FftType.FFT, (3,))

    args = (np.ones(3, np.complex64),)
    (result,) = run(Harness("fft", "case", factorize, args), targets=["onnx"], modes=[RUNTIME])
    assert result.outcome in (Outcome.LOWERING_ERROR, Outcome.EQUAL)
    assert result.outcome == Outcome.EQUAL or "ONNX" in result.message or "onnx" in result.message
