"""ONNX in Chromium."""

from harnesses.evaluation.converters import onnx
from harnesses.evaluation.converters.chromium import loads, missing
from harnesses.evaluation.converters.converter import Converter

CONVERTER = Converter(
    "ONNX (Chromium)",
    "The files of ONNX; onnxruntime-web runs them in Chromium without a window, by wasm.",
    loads("onnxruntime", onnx.FILE),
    write=onnx.write,
    missing=missing,
)
