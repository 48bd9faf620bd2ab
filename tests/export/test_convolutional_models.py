"""Exported networks of convolutions: each op is one that a person would have written there."""

import collections
import json

import numpy as np
import onnx
import pytest

from harnesses import models
from lowering import export
from tools.bench_exports import count_ops

NAMES = ("mobilenet_v2", "resnet50")
LAYERS = {
    "ADD",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "MAX_POOL_2D",
    "MEAN",
    "PAD",
}


def options(name, batch):
    model = models.load(name, "small")
    inputs = model.make_inputs(0, batch=batch)
    return {"fun": model.apply, "args": (inputs,), "params": model.init(0), "verify": False}


def kernels(name):
    """How many convolutions and matrices there are among the parameters."""
    params = models.load(name, "small").init(0)["params"]
    flat = [np.ndim(x) for x in _leaves(params)]
    return flat.count(4), flat.count(2)


def _leaves(tree):
    return [x for y in tree.values() for x in (_leaves(y) if isinstance(y, dict) else [y])]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_tflite(name, batch):
    """Normalizations and activations are part of convolutions, and nothing is transposed."""
    ops = count_ops(export.to_tflite(**options(name, batch)))
    assert set(ops) <= LAYERS
    convolutions, matrices = kernels(name)
    assert ops["CONV_2D"] + ops["DEPTHWISE_CONV_2D"] == convolutions
    assert ops["FULLY_CONNECTED"] == matrices == 1


@pytest.mark.parametrize("name", NAMES)
def test_onnx(name):
    """Only images and the last features are transposed, as ONNX has the channels first."""
    model = onnx.load_from_string(export.to_onnx(**options(name, 2)))
    ops = collections.Counter(node.op_type for node in model.graph.node)
    assert ops["Transpose"] <= 2
    assert ops["Conv"] == kernels(name)[0]
    assert not {"Mul", "Sub", "Div"} & set(ops)
    assert not ops["BatchNormalization"]


@pytest.mark.parametrize("name", NAMES)
def test_tfjs(name, tmp_path):
    export.to_tfjs(path=tmp_path / "model", **options(name, 2))
    nodes = json.loads((tmp_path / "model" / "model.json").read_text())["modelTopology"]["node"]
    ops = collections.Counter(node["op"] for node in nodes)
    assert not {"Transpose", "FusedBatchNormV3", "Rsqrt", "Sub"} & set(ops)
