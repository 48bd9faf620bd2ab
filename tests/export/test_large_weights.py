"""Large weights, which stay outside of a graph until they are written."""

import gc
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import export
from lowering.export import frozen, memory, tflite_converter

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def tied(params, tokens):
    """Embeddings that give the logits, too."""
    return jnp.tanh(params["table"][tokens] * 8.0) @ params["table"].T


def normalized(params, x):
    """A convolution with a factor and an addend for each feature, and an activation."""
    y = lax.conv_general_dilated(
        x, params["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.nn.relu(y * params["scale"] + params["bias"])


def repeated(params, x):
    """Steps that are too many to be unrolled."""
    return lax.fori_loop(0, 40, lambda i, x: jnp.tanh(x @ params["w"] + i), x)


def prepared(params, x):
    """What is computed of weights alone."""
    w = jnp.swapaxes(params["w"].reshape(3, 2, 6), 0, 1).reshape(6, 6) * params["scale"]
    return x @ w, x @ (params["half"].astype(jnp.float32) + 1)


CASES = {
    "tied": (tied, {"table": normal(20, 8)}, (np.int32([[1, 2, 19]]),)),
    "normalized": (
        normalized,
        {"kernel": normal(3, 3, 2, 4), "scale": normal(4), "bias": normal(4)},
        (normal(1, 5, 5, 2),),
    ),
    "repeated": (repeated, {"w": normal(6, 6) / 4}, (normal(2, 6),)),
    "prepared": (
        prepared,
        {"w": normal(6, 6), "scale": normal(6), "half": normal(6, 6).astype(jnp.bfloat16)},
        (normal(2, 6),),
    ),
}


def written(folder, name, **options):
    """The files of a model: its graph and manifest without the names of weights, and its bytes."""
    fun, params, args = CASES[name]
    export.to_tfjs(fun, args, folder, params=params, **options)
    model = json.loads((folder / "model.json").read_text())
    (manifest,) = model["weightsManifest"]
    data = b"".join((folder / path).read_bytes() for path in manifest["paths"])
    return model, manifest, data


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("quantize", [None, "uint8"])
def test_models_are_those_with_weights_in_the_graph(name, quantize, tmp_path, monkeypatch):
    """The new model is verified, and its weights are stored once."""
    options = {"quantize": quantize, "verify": False}
    inside, _, expected = written(tmp_path / "inside", name, **options)
    monkeypatch.setattr(frozen, "LARGE_BYTES", 1)
    outside, _, data = written(tmp_path / "outside", name, quantize=quantize)
    ops = [
        sorted(node["op"] for node in model["modelTopology"]["node"]) for model in (inside, outside)
    ]
    assert ops[0] == ops[1]
    assert len(data) == len(expected)
    assert sorted(data) == sorted(expected)
    assert not any("value" in node.get("attr", {}) for node in outside["modelTopology"]["node"])


def test_shards_have_the_size_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(frozen, "LARGE_BYTES", 1)
    _, manifest, data = written(tmp_path / "model", "tied", shard_bytes=100)
    sizes = [(tmp_path / "model" / path).stat().st_size for path in manifest["paths"]]
    assert sizes[:-1] == [100] * (len(sizes) - 1)
    assert 0 < sizes[-1] <= 100
    assert len(list((tmp_path / "model").iterdir())) == len(sizes) + 1
    assert len(data) >= 20 * 8 * 4


@pytest.mark.parametrize("name", CASES)
def test_onnx_models_are_one_message(name, tmp_path, monkeypatch):
    """The new model is verified; it has the same parts."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnx_ir")
    from lowering.export import onnx_files as files

    fun, params, args = CASES[name]
    models = []
    for size in (1 << 30, 1):
        monkeypatch.setattr(files, "LARGE_BYTES", size)
        made = export.to_onnx(fun, args, params=params, verify=size == 1)
        models.append(onnx.load_from_string(made))
        export.to_onnx(fun, args, tmp_path / f"{size}.onnx", params=params, verify=False)
        assert (tmp_path / f"{size}.onnx").read_bytes() == made
    onnx.checker.check_model(models[1], full_check=True)
    with (tmp_path / "1.onnx").open("rb") as file:
        described = onnx.load_from_string(files.without_weights(file))
    assert [x.name for x in described.graph.initializer]
    for tensor in described.graph.initializer:
        assert not tensor.raw_data
    del models[1].graph.initializer[:], described.graph.initializer[:]
    assert models.pop() == described
    models.append(onnx.load(tmp_path / "1.onnx"))
    for model in models:
        model.graph.initializer.sort(key=lambda tensor: tensor.name)
        del model.graph.value_info[:]  # Initializers say what they are, anyhow.
    assert models[0] == models[1]


@pytest.mark.parametrize("name", CASES)
def test_onnx_weights_are_mapped(name, tmp_path, monkeypatch):
    """What onnxruntime runs to verify a model has the numbers of its file, and is removed."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnx_ir")
    from lowering.export import onnx_files as files
    from lowering.export.onnx import saving

    fun, params, args = CASES[name]
    monkeypatch.setattr(files, "LARGE_BYTES", 1)
    path = tmp_path / "model.onnx"
    export.to_onnx(fun, args, path, params=params)
    assert list(tmp_path.iterdir()) == [path]
    with saving.mapped(path) as mapped:
        assert mapped.parent == path.parent and mapped != path
        described = onnx.load(mapped, load_external_data=False).graph.initializer
        is_external = [x.data_location == onnx.TensorProto.EXTERNAL for x in described]
        assert all(is_external) and is_external
        found = onnx.load(mapped)
    assert list(tmp_path.iterdir()) == [path]
    expected = onnx.load(path)
    for tensor in found.graph.initializer:
        tensor.ClearField("data_location")
    assert found == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_onnx_weights_of_16_bits_are_made_when_they_are_written(dtype, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnx_ir")
    from lowering.export.onnx import initializers

    w = normal(64, 48).astype(jnp.dtype(dtype))
    models = []
    for size in (1 << 30, 1):
        monkeypatch.setattr(initializers, "SMALL_BYTES", size)
        made = export.to_onnx(lambda w, x: jnp.tanh(x @ w), (normal(2, 64),), params=w)
        models.append(onnx.load_from_string(bytes(made)))
    assert models[0] == models[1]
    (stored,) = models[1].graph.initializer
    assert stored.data_type == getattr(onnx.TensorProto, dtype.upper())


def test_memory_of_large_models(monkeypatch):
    """The thresholds are set for a context, and to what glibc would choose afterwards."""
    given = []
    monkeypatch.setattr(memory, "_set", lambda parameter, number: given.append((parameter, number)))
    with memory.returned(memory.LARGE_BYTES - 1):
        assert not given
    with pytest.raises(KeyError), memory.returned(memory.LARGE_BYTES):
        assert given == [(memory._MMAP_THRESHOLD, 1 << 20)]
        raise KeyError
    assert given[1:] == [(memory._MMAP_THRESHOLD, 1 << 25), (memory._TRIM_THRESHOLD, 1 << 26)]


@pytest.mark.parametrize("to", ["onnx", "tfjs"])
def test_parameters_of_a_memory_map(to, tmp_path, monkeypatch):
    monkeypatch.setattr(frozen, "LARGE_BYTES", 1)
    w = np.memmap(tmp_path / "w", np.float32, "w+", shape=(6, 6))
    w[:] = normal(6, 6)
    if to == "onnx":
        pytest.importorskip("onnx_ir")
    exporter = getattr(export, f"to_{to}")
    exporter(lambda params, x: x @ params, (normal(2, 6),), tmp_path / "model", params=w)
    assert (tmp_path / "model").exists()


def test_a_converter_has_no_weights_that_were_loaded_before(monkeypatch):
    """Objects of a SavedModel are in cycles, which Python frees when it happens to look."""
    found = []

    def count():
        return sum(isinstance(x, tf.Variable) for x in gc.get_objects())

    def observed(converter, **options):
        found.append(count())
        avoid_copies(converter, **options)

    avoid_copies = tflite_converter.avoid_copies
    monkeypatch.setattr(tflite_converter, "avoid_copies", observed)
    gc.collect()
    before = count()
    gc.disable()
    try:
        for least in (0, memory.LARGE_BYTES):
            monkeypatch.setattr(memory, "LARGE_BYTES", least)
            export.to_tflite(prepared, (normal(2, 6),), params=CASES["prepared"][1], verify=False)
            gc.collect()
    finally:
        gc.enable()
    of_large, of_small = (number - before for number in found)
    weights = len(CASES["prepared"][1])
    assert of_large == weights < of_small
