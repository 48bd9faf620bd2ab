"""How close to JAX an exported model has to be that computes in float16 or bfloat16."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from lowering import export
from lowering.export import precision, verification
from lowering.export.entries import entry
from lowering.targets import ONNX, TF

X = np.random.default_rng(0).uniform(-1, 1, (4, 4)).astype(np.float32)
NUMBERS = np.arange(4, dtype=np.int32)
HALVES = ["float16", "bfloat16"]


@pytest.mark.parametrize("dtype", HALVES)
def test_what_is_computed_in_16_bits(dtype):
    """What only moves numbers that are rounded already, or chooses some by them, rounds nothing."""

    def fun(x, half, i):
        rounded = x.astype(dtype)
        looped = jax.lax.fori_loop(0, 3, lambda _, c: c / 3, rounded)
        precise = [
            x @ x,
            half,
            x @ half.T.astype(x.dtype),
            jnp.flip(half)[1:].astype(x.dtype),
            i,
            i + 1,
            x[jnp.argmax(rounded, 1)],
        ]
        coarse = [rounded, rounded.sum().astype(x.dtype), x + looped, jax.jit(jnp.tanh)(rounded)]
        return precise + coarse

    made = entry(fun, (X, X.astype(dtype), NUMBERS), ONNX)
    found = precision.epsilons(made.reference, made.samples)
    assert max(found[:7]) == float(np.finfo(np.float32).eps)
    assert found[7:] == [float(ml_dtypes.finfo(dtype).eps)] * 4


def test_what_is_computed_in_fewer_than_64_bits():
    """The softmax of JAX's attention is computed in float32."""
    x = np.random.default_rng(0).normal(size=(2, 5, 2, 4))
    with jax.enable_x64(True):
        made = entry(lambda x: (jax.nn.dot_product_attention(x, x, x), x + 1), (x,), ONNX)
        found = precision.epsilons(made.reference, made.samples)
        assert found == [float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64)]
        export.to_onnx(lambda x: jax.nn.dot_product_attention(x, x, x), (x,))


@pytest.mark.parametrize("to", ["saved_model", "tflite", "onnx", "tfjs"])
@pytest.mark.parametrize("dtype", HALVES)
def test_networks_in_16_bits(dtype, to, tmp_path):
    """Runtimes sum in another order than JAX, so that a sum may be rounded to the next number."""
    rng = np.random.default_rng(1)
    params = [rng.normal(size=(32, 32)).astype(np.float32) / 4 for _ in range(6)]

    def fun(params, x):
        x = x.astype(dtype)
        for weights in params:
            x = jax.nn.gelu(x @ weights.astype(dtype))
        return x, x.astype(np.float32)

    x = rng.normal(size=(8, 32)).astype(np.float32)
    folder = (tmp_path / "model",) if to in ("saved_model", "tfjs") else ()
    getattr(export, f"to_{to}")(fun, (x,), *folder, params=params)


def test_a_difference_is_found(monkeypatch):
    monkeypatch.setattr(export.onnx, "run", lambda *_: {"result": X * 1.1})
    with pytest.raises(export.VerificationError, match=r"by 0\.098, where 0\.088 is accepted"):
        export.to_onnx(lambda x: x.astype("bfloat16").astype(x.dtype), (X,))


@pytest.mark.parametrize("algorithm", ["F16_F16_F32", "BF16_BF16_F32_X3"])
def test_algorithms_that_the_cpu_lacks(algorithm):
    """The reference computes such products in the dtypes of the algorithm."""

    def product(x, y):
        return jnp.sin(jax.lax.dot(x, y, precision=jax.lax.DotAlgorithmPreset[algorithm]))

    x = X.astype(np.float16 if algorithm.startswith("F16") else np.float32)
    assert export.to_onnx(product, (x, x))


def attend(x):
    return jax.nn.dot_product_attention(x, x, x)


def test_attention_of_float16(monkeypatch):
    x = np.ones((1, 2, 3, 4), np.float16)
    assert export.to_onnx(attend, (x,))
    monkeypatch.setattr(verification, "on_every_device", lambda fun: fun)
    with pytest.raises(export.VerificationError, match=r"fails to run the function .*verify=False"):
        export.to_onnx(attend, (x,))
    assert export.to_onnx(attend, (x,), verify=False)


def test_what_fails_while_it_runs_is_not_run_again():
    calls = []

    def fail(x):
        calls.append(x)
        raise RuntimeError("no such sensor")

    def fun(x):
        return jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    made = entry(fun, (X,), TF)
    with pytest.raises(export.VerificationError, match="no such sensor"):
        verification._by_jax("fun", made)
    assert len(calls) == 1
