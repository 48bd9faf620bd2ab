"""The bench of models in 16 bits, and of products of int8."""

import jax.numpy as jnp
import numpy as np
import pytest

from tools import bench_dtypes

pytest.importorskip("ai_edge_litert")
pytest.importorskip("onnxruntime")


def _network():
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(128, 128)).astype(np.float32) for _ in range(4)]

    def compute(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return x

    x = rng.normal(size=(4, 128)).astype(np.float32)
    return bench_dtypes.in_dtypes(bench_dtypes.Case(compute, weights, x))


@pytest.mark.parametrize(
    ("by_dtype", "file"),
    [(_network, 0.55), (bench_dtypes.products, 0.26)],
    ids=["network", "product"],
)
def test_files_have_the_bits_of_the_weights(by_dtype, file):
    figures = {name: value.value for name, value in bench_dtypes.report(by_dtype(), 1)}
    ratios = {name: value for name, value in figures.items() if name.endswith("/ float32")}
    assert {name.split(",")[0] for name in ratios} == {"TF Lite", "ONNX"}
    assert all(value <= file for name, value in ratios.items() if "file" in name)
