"""Quantized models of ONNX: what is quantized, how exact they are, and what is refused."""

import collections
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering.export.onnx
from lowering import export
from lowering.export.verification import VerificationError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx_ir")

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def weights(*shape):
    return numbers(*shape) / np.sqrt(np.prod(shape[:-1]))


MLP = [(weights(16, 64), numbers(64)), (weights(64, 64), numbers(64)), (weights(64, 8), numbers(8))]
CNN = {"filters": weights(3, 3, 4, 16), "dense": weights(16, 8), "bias": numbers(16)}
LSTM = {"input": weights(16, 64), "state": weights(16, 64)}
WORDS = {"embedding": weights(32, 64), "dense": weights(64, 8)}


def mlp(params, x):
    *hidden, (w, b) = params
    for each, bias in hidden:
        x = jax.nn.relu(x @ each + bias)
    return x @ w + b


def cnn(params, x):
    numbers_of = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, params["filters"], (1, 1), "SAME", dimension_numbers=numbers_of)
    return jax.nn.relu(x + params["bias"]).mean((1, 2)) @ params["dense"]


def lstm(params, x):
    def step(state, row):
        i, f, g, o = jnp.split(row @ params["input"] + state[0] @ params["state"], 4, -1)
        cell = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(cell), cell), None

    zeros = jnp.zeros((x.shape[1], 16))
    return lax.scan(step, (zeros, zeros), x)[0][0]


def words(params, tokens):
    return jax.nn.gelu(params["embedding"][tokens]) @ params["dense"]


PROGRAMS = {
    "mlp": (mlp, MLP, numbers(6, 16)),
    "cnn": (cnn, CNN, numbers(2, 8, 8, 4)),
    "lstm": (lstm, LSTM, numbers(20, 3, 16)),
    "words": (words, WORDS, RNG.integers(32, size=(2, 5), dtype=np.int32)),
}


def like(x):
    """Another input of the same range."""
    return x if x.dtype == np.int32 else RNG.permuted(x)


def exported(name, quantize, **options):
    fun, params, x = PROGRAMS[name]
    if quantize == "int8":
        options.setdefault("representative_data", lambda: [(like(x),) for _ in range(4)] + [(x,)])
    return export.to_onnx(fun, (x,), params=params, quantize=quantize, **options)


def kinds(model):
    found, graphs = collections.Counter(), [onnx.load_from_string(model).graph]
    while graphs:
        for node in graphs.pop().node:
            found[node.op_type] += 1
            graphs += [a.g for a in node.attribute if a.HasField("g")]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("quantize", ["dynamic", "int8", "int4"])
def test_programs(name, quantize):
    model = exported(name, quantize)
    onnx.checker.check_model(onnx.load_from_string(model), full_check=True)
    assert kinds(model)["DequantizeLinear"] + kinds(model)["DynamicQuantizeLinear"]


def test_products_are_of_integers():
    assert kinds(exported("mlp", "dynamic"))["MatMulInteger"] == 3
    assert kinds(exported("cnn", "dynamic"))["ConvInteger"] == 1
    assert kinds(exported("lstm", "dynamic"))["MatMulInteger"] >= 2
    assert kinds(exported("mlp", "int8"))["QuantizeLinear"] >= 3
    four_bits = onnx.load_from_string(exported("mlp", "int4")).graph.initializer
    assert onnx.TensorProto.UINT4 in {x.data_type for x in four_bits}


def test_files_are_small():
    params = [weights(512, 512)] * 2
    x = numbers(3, 512)

    def layers(params, x):
        return jnp.tanh(x @ params[0]) @ params[1]

    sizes = {
        quantize: len(export.to_onnx(layers, (x,), params=params, quantize=quantize))
        for quantize in (None, "dynamic", "int4")
    }
    assert sizes["dynamic"] < 0.3 * sizes[None]
    assert sizes["int4"] < 0.2 * sizes[None]


def test_weights_beside_the_model(tmp_path):
    path = tmp_path / "model.onnx"
    exported("mlp", "dynamic", path=path, external_data=True)
    assert {x.name for x in tmp_path.iterdir()} == {"model.onnx", "model.onnx.data"}


def test_batches_of_any_size():
    model = exported("mlp", "dynamic", polymorphic_shapes=["b, _"])
    session = onnxruntime.InferenceSession(model)
    assert session.get_inputs()[0].shape == ["b", 16]
    (result,) = session.run(None, {"x": numbers(2, 16)})
    assert result.shape == (2, 8)


def test_a_mistake_is_found():
    """Data of another range than the inputs."""
    x = PROGRAMS["mlp"][2]
    with pytest.raises(VerificationError, match="for the quantization"):
        exported("mlp", "int8", representative_data=[(x / 10,)])


def test_what_is_refused():
    with pytest.raises(ValueError, match="quantize is one of dynamic, int8, int4, not 'float16'"):
        exported("mlp", "float16")
    with pytest.raises(ValueError, match="needs representative_data"):
        exported("mlp", "int8", representative_data=None)
    with pytest.raises(ValueError, match="representative_data is for"):
        exported("mlp", "int4", representative_data=[])
    with pytest.raises(ValueError, match="representative_data is empty"):
        exported("mlp", "int8", representative_data=[])
    with pytest.raises(ValueError, match="nothing to quantize"):
        export.to_onnx(jnp.sin, (numbers(3),), quantize="dynamic")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (numbers(5, 16), r"shape \(5, 16\) for the input 'x', whose shape is \(6, 16\)"),
        (numbers(6, 4, 4), r"shape \(6, 4, 4\)"),
        (np.full((6, 16), "1"), "input 'x' is <U1, not float32"),
        (1j * numbers(6, 16), "input 'x' is complex64, not float32"),
    ],
)
def test_data_that_are_not_like_the_inputs(data, message, monkeypatch):
    def convert(*args, **kwargs):
        raise AssertionError("the model is made")

    monkeypatch.setattr(lowering.export.onnx, "converted", convert)
    with pytest.raises(ValueError, match=message):
        exported("mlp", "int8", representative_data=[(PROGRAMS["mlp"][2],), (data,)])
    with pytest.raises(ValueError, match="is float64, not int32"):
        exported("words", "int8", representative_data=[(np.full((2, 5), 0.5),)])


def test_data_of_any_batch_and_of_more_bits():
    x = PROGRAMS["mlp"][2]
    data = [(np.float64(x[:2]),), (x[3:4],), (x,)]
    model = exported("mlp", "int8", representative_data=data, polymorphic_shapes=["b, _"])
    assert kinds(model)["QuantizeLinear"]


@pytest.mark.parametrize("quantize", ["dynamic", "int8", "int4"])
def test_what_the_quantizer_leaves_behind(quantize, monkeypatch, capfd):
    """The model says what it would say without it, and the logs of the process are the user's."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    x = numbers(4, 64)
    options = {"params": weights(64, 32), "metadata": {"name": "a product"}, "opset": 22}
    exact = export.to_onnx(lambda w, x: x @ w, (x,), **options)
    if quantize == "int8":
        options["representative_data"] = [(x,)]
    quantized = export.to_onnx(lambda w, x: x @ w, (x,), quantize=quantize, **options)
    assert quantized.description.metadata == exact.description.metadata
    assert logging.getLogger().handlers == []
    assert "pre-processing" not in capfd.readouterr().err
