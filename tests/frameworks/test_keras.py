"""Keras on its JAX backend: the applications, with untrained weights, and layers."""

import pytest

from tests.helpers import run_alone
from tests.turns import turns

pytest.importorskip("keras")

APPLICATIONS = (
    "MobileNetV2",
    "NASNetMobile",
    "EfficientNetB0",
    "DenseNet121",
    "ResNet50",
    "ConvNeXtTiny",
)


@pytest.mark.parametrize("name", turns(APPLICATIONS, "application"))
def test_an_application(name):
    run("tests.frameworks.keras_applications", name)


def test_layers_in_onnx():
    pytest.importorskip("onnx_ir")
    run("tests.frameworks.keras_layers")


def run(module: str, *args: str) -> None:
    """Runs a module in a process of its own: TensorFlow imports Keras with another backend."""
    run_alone(module, *args, KERAS_BACKEND="jax", TF_CPP_MIN_LOG_LEVEL="3")
