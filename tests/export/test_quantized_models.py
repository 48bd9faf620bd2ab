"""Trained models in integers throughout are as accurate as in floats."""

import jax
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from lowering import export
from tests.export.classifiers import CLASSIFIERS, digits, train

BATCH = 90
EXAMPLES = 270


def accuracy(predict, images, labels):
    batches = images.reshape(-1, BATCH, *images.shape[1:])
    found = np.concatenate([np.argmax(predict(batch), axis=-1) for batch in batches])
    return np.mean(found == labels)


def in_litert(model):
    """The outputs of a model that has integers for inputs and outputs, up to a factor."""
    runner = Interpreter(model_content=model).get_signature_runner()
    (given,), (returned,) = runner.get_input_details().items(), runner.get_output_details().items()
    assert given[1]["dtype"] == returned[1]["dtype"] == np.int8

    def predict(images):
        scale, zero = given[1]["quantization"]
        quantized = np.clip(np.rint(images / scale) + zero, -128, 127).astype(np.int8)
        return runner(**{given[0]: quantized})[returned[0]]

    return predict


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_accuracy(name):
    classifier, (trained, tested) = CLASSIFIERS[name], digits()
    apply, params = classifier.network.apply, train(classifier, trained)
    examples, images = map(classifier.images, (trained.images[:EXAMPLES], tested.images))
    args = (jax.ShapeDtypeStruct((BATCH, *images.shape[1:]), "float32"),)
    model = export.to_tflite(
        apply,
        args,
        params=params,
        quantize="full",
        representative_data=[(x,) for x in examples.reshape(-1, BATCH, *images.shape[1:])],
        io_dtype="int8",
        # In integers, LiteRT's log-softmax ends at -16; the answer is the same.
        verify=name != "cnn",
    )
    in_floats = accuracy(jax.jit(lambda x: apply(params, x)), images, tested.labels)
    assert in_floats > 0.9
    assert accuracy(in_litert(model), images, tested.labels) >= in_floats - 0.01
    types = {detail["dtype"] for detail in Interpreter(model_content=model).get_tensor_details()}
    assert np.float32 not in types
