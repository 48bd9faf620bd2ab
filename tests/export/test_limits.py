"""What a format does not hold is refused before it is converted, with what to do instead."""

import numpy as np
import pytest

from lowering import convert, export
from lowering.errors import UnsupportedError
from lowering.export import limits, saved_model, tflite_converter
from lowering.export.tfjs import graph_model
from lowering.ops import constants

W = np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32)
X = W[:2]


def layer(w, x):
    return x @ w


def never(*args, **kwargs):
    raise AssertionError("it is converted")


@pytest.fixture
def small(monkeypatch):
    """Formats that hold less than the weights."""
    monkeypatch.setattr(limits, "LARGEST", W.nbytes - 1)


@pytest.mark.parametrize("to", ["tflite", "tfjs"])
def test_weights(to, small, tmp_path, monkeypatch):
    monkeypatch.setattr(tflite_converter, "_converted", never)
    monkeypatch.setattr(graph_model, "frozen", never)
    with pytest.raises(UnsupportedError, match=r"holds 2 GB.*to_onnx with a path"):
        if to == "tflite":
            export.to_tflite(layer, (X,), params=W)
        else:
            export.to_tfjs(layer, (X,), tmp_path / "model", params=W)
    assert not list(tmp_path.iterdir())


def test_weights_in_fewer_bits(small):
    assert export.to_tflite(layer, (X,), params=W, quantize="dynamic")


def test_constants_of_a_saved_model(small, tmp_path, monkeypatch):
    export.to_saved_model(layer, (X,), tmp_path / "model", params=W)
    monkeypatch.setattr(saved_model.tf.saved_model, "save", never)
    with pytest.raises(UnsupportedError, match=r"closes over.*Those in params may have more"):
        export.to_saved_model(lambda x: x @ W, (X,), tmp_path / "other")


def test_a_constant_that_no_graph_has(monkeypatch):
    monkeypatch.setattr(constants, "_LARGEST_BYTES", W.nbytes - 1)
    import tensorflow as tf

    spec = tf.TensorSpec(X.shape, tf.float32)
    with pytest.raises(UnsupportedError, match="as an argument, or to an exporter in params"):
        tf.function(convert(lambda x: x @ W), autograph=False).get_concrete_function(spec)
