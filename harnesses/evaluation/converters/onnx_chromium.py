"""ONNX in Chromium."""

import pathlib

from harnesses.browser import ONNX_OPSET
from harnesses.evaluation.converters import onnx
from harnesses.evaluation.converters.chromium import loads, missing
from harnesses.evaluation.converters.converter import Converter
from harnesses.evaluation.program import Program
from lowering import export


def write(program: Program, folder: pathlib.Path) -> None:
    """Writes a model in operators that onnxruntime-web has."""
    model = export.to_onnx(**program.export_options(), opset=ONNX_OPSET)
    (folder / onnx.FILE).write_bytes(model)


CONVERTER = Converter(
    "ONNX (Chromium)",
    "The models of ONNX; onnxruntime-web runs them in Chromium without a window, by wasm.",
    loads("onnxruntime", onnx.FILE),
    write=write,
    missing=missing,
)
