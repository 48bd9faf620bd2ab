"""Converters, each in a module of its own, which has it as `CONVERTER`."""

import importlib

from harnesses.evaluation.converters.converter import Converter, Run

# The modules, in the order of the columns.
_MODULES = (
    "xla",
    "no_xla",
    "saved_model",
    "tflite",
    "tflite_chromium",
    "tflite_flex",
    "onnx",
    "onnx_chromium",
    "tfjs_node",
    "tfjs_node_wasm",
    "tfjs_chromium_webgl",
    "tfjs_chromium_wasm",
    "native_tflite",
    "hlo",
    "hlo_flex",
    "jax2onnx",
)

CONVERTERS: dict[str, Converter] = {
    module: importlib.import_module(f"{__name__}.{module}").CONVERTER for module in _MODULES
}

__all__ = ["CONVERTERS", "Converter", "Run"]
