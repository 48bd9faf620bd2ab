"""ONNX in Chromium."""

import contextlib
import pathlib

from harnesses.evaluation.converters import onnx
from harnesses.evaluation.converters.chromium import missing, run_in_chromium
from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program


def _load(_: Program, folder: pathlib.Path) -> contextlib.AbstractContextManager[Run]:
    return run_in_chromium("onnxruntime", folder / onnx.FILE)


CONVERTER = Converter(
    "ONNX (Chromium)",
    "The files of ONNX; onnxruntime-web runs them in Chromium without a window, by wasm.",
    _load,
    write=onnx.write,
    missing=missing,
)
