"""Quantized models compute what JAX does, but for the steps of what is quantized."""

import dataclasses
import tracemalloc

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export
from lowering.export import litert, quantization, tflite, weight_quantization
from lowering.export.entries import entry
from lowering.targets import TFLITE

ROWS = jax.ShapeDtypeStruct((4, 32), "float32")


class Layers(nn.Module):
    """A perceptron with weights that are large enough to be quantized."""

    @nn.compact
    def __call__(self, x):
        for features in (64, 64):
            x = nn.relu(nn.Dense(features)(x))
        x = nn.Dense(10)(x)
        return {"probabilities": nn.softmax(x), "class": jnp.argmax(x, -1)}


@pytest.fixture(scope="module")
def params():
    return Layers().init(jax.random.key(0), jnp.ones(ROWS.shape))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return [(rng.uniform(-1, 1, ROWS.shape).astype(np.float32),) for _ in range(8)]


def classify(params, rows):
    return Layers().apply(params, rows)


def options(quantize, data):
    if quantize in weight_quantization.NAMED:
        pytest.importorskip("ai_edge_quantizer")
    return {"quantize": quantize, "representative_data": data if quantize == "full" else None}


@pytest.mark.parametrize("quantize", tflite.QUANTIZATIONS)
def test_tflite(quantize, params, data):
    plain = export.to_tflite(classify, (ROWS,), params=params)
    model = export.to_tflite(classify, (ROWS,), params=params, **options(quantize, data))
    assert len(model) < 0.75 * len(plain)


@pytest.mark.parametrize("io_dtype", tflite.IO_DTYPES)
def test_inputs_and_outputs_of_integers(io_dtype, params, data):
    model = export.to_tflite(
        classify, (ROWS,), params=params, io_dtype=io_dtype, **options("full", data)
    )
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    (details,) = litert.Interpreter(model_content=model).get_input_details()
    assert details["dtype"] == np.dtype(io_dtype) and details["quantization"][0] > 0


def test_data_of_several_functions_and_pytrees():
    functions = {
        "scaled": lambda tree, y: tree["b"] * 3 - tree["a"] * y,
        "sum": lambda x: (x + 1).sum(),
    }
    rng = np.random.default_rng(0)

    def draw():
        return rng.uniform(-1, 1, (8,)).astype(np.float32)

    x = jax.ShapeDtypeStruct((8,), "float32")
    data = {
        "scaled": [({"a": 100 * draw(), "b": draw()}, draw()) for _ in range(8)],
        "sum": lambda: ((draw(),) for _ in range(8)),
    }
    args = {"scaled": ({"a": x, "b": x}, x), "sum": (x,)}
    export.to_tflite(functions, args, quantize="full", representative_data=data)


@pytest.mark.parametrize("quantize", quantization.TFJS)
def test_tfjs(quantize, params, tmp_path):
    sizes = {}
    for name in (None, quantize):
        path = tmp_path / str(name)
        export.to_tfjs(classify, (ROWS,), path, params=params, quantize=name, shard_bytes=1000)
        shards = list(path.glob("*.bin"))
        assert len(shards) > 1 and all(s.stat().st_size <= 1000 for s in shards)
        sizes[name] = sum(s.stat().st_size for s in shards)
    assert sizes[quantize] < (0.3 if quantize == "uint8" else 0.55) * sizes[None]


@pytest.mark.parametrize("quantize", tflite.QUANTIZATIONS)
def test_a_model_of_other_weights_is_found(quantize, params, data, monkeypatch):
    """What quantization does to the results hides no mistake."""
    run = litert.run

    def run_other(model, name, made):
        other = jax.tree_util.tree_map(lambda x: x * 1.5, params)
        return run(export.to_tflite(classify, (ROWS,), params=other, verify=False), name, made)

    monkeypatch.setattr(litert, "run", run_other)
    with pytest.raises(export.VerificationError, match=r"beside .* for the quantization"):
        export.to_tflite(classify, (ROWS,), params=params, **options(quantize, data))


def test_a_tolerance_that_is_given_is_all_that_is_accepted(params, data):
    with pytest.raises(export.VerificationError, match="where 1e-06 is accepted"):
        export.to_tflite(classify, (ROWS,), params=params, tolerance=1e-6, **options("full", data))


def test_the_spread_follows_from_the_steps():
    """That of a sum of n products is what n errors of half a step make."""
    w = np.linspace(-1, 1, 4096, dtype=np.float32)
    x = np.ones(4096, np.float32)
    made = entry(lambda w, x: w @ x, (x,), TFLITE, params=w)
    spreads = {
        steps: quantization.spread(
            made, quantization.Quantization(weights=quantization.of_range(steps))
        )[0]
        for steps in (255, 65535)
    }
    np.testing.assert_allclose(spreads[255] / spreads[65535], 65535 / 255, rtol=0.01)
    half = 1 / 255
    # All elements may be off by the same, at most by half a step.
    assert 4096**0.5 * half < spreads[255] < quantization.DEVIATIONS * 4096 * half


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_spread_follows_from_the_ranges_of_batches_of_all_sizes(size):
    """In a batch of one, a bias is not broadcast, so the program has fewer equations."""

    def layer(params, x):
        w, bias = params
        return (x - x.mean(0)) @ w + bias

    w, bias = np.eye(4, dtype=np.float32), np.zeros((1, 4), np.float32)
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    made = entry(layer, (x,), TFLITE, params=(w, bias), polymorphic_shapes=["b, _"])
    made = dataclasses.replace(made, samples=[x])
    usual, wide = (
        quantization.spread(made, quantization.TFLITE["full"], [[scale * x[:size]]])[0]
        for scale in (1, 100)
    )
    assert wide > 20 * usual


def test_bad_options(tmp_path):
    with pytest.raises(ValueError, match="quantize is one of dynamic, float16, full, int8, int4"):
        export.to_tflite(jnp.sin, (ROWS,), quantize="int3")
    with pytest.raises(ValueError, match="needs representative_data"):
        export.to_tflite(jnp.sin, (ROWS,), quantize="full")
    with pytest.raises(ValueError, match='representative_data is for quantize="full"'):
        export.to_tflite(jnp.sin, (ROWS,), quantize="dynamic", representative_data=[])
    with pytest.raises(ValueError, match="representative_data is empty"):
        export.to_tflite(jnp.sin, (ROWS,), quantize="full", representative_data=[])
    with pytest.raises(TypeError, match="expected inputs like args"):
        export.to_tflite(jnp.sin, (ROWS,), quantize="full", representative_data=[(1, 2)])
    for data, error, message in (
        (3, TypeError, "representative_data is an iterable of tuples like args, or a function"),
        (np.ones((2, *ROWS.shape), np.float32), TypeError, r"such as \(x,\), not ndarray"),
        ([(np.ones((2, 2), np.float32),)], ValueError, r"has an array of the shape \(2, 2\)"),
    ):
        with pytest.raises(error, match=message):
            export.to_tflite(jnp.sin, (ROWS,), quantize="full", representative_data=data)
    with pytest.raises(TypeError, match=r"inputs of each function: \['f'\]"):
        export.to_tflite(
            {"f": jnp.sin}, {"f": (ROWS,)}, quantize="full", representative_data=[(1,)]
        )
    with pytest.raises(ValueError, match='io_dtype is for quantize="full"'):
        export.to_tflite(jnp.sin, (ROWS,), io_dtype="int8")
    with pytest.raises(ValueError, match="io_dtype is one of int8, uint8, not 'int16'"):
        export.to_tflite(
            jnp.sin, (ROWS,), quantize="full", representative_data=[], io_dtype="int16"
        )
    with pytest.raises(ValueError, match="quantize is one of uint8, uint16, float16"):
        export.to_tfjs(jnp.sin, (ROWS,), tmp_path / "model", quantize="int8")
    with pytest.raises(ValueError, match="shard_bytes is a positive number of bytes, not 0"):
        export.to_tfjs(jnp.sin, (ROWS,), tmp_path / "model", shard_bytes=0)


def test_the_spread_makes_few_copies_of_weights():
    layers = [np.eye(512, dtype=np.float32)] * 8

    def chain(params, x):
        for w in params:
            x = x @ w
        return x

    made = entry(chain, (np.ones((1, 512), np.float32),), TFLITE, params=layers)
    tracemalloc.start()
    try:
        quantization.spread(made, quantization.TFLITE["dynamic"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # There is an error for each weight as such and as an operand; JAX may read them where they are.
    assert peak < 3 * sum(w.nbytes for w in layers)
