"""TF Lite with kernels of TensorFlow."""

import pathlib

import tensorflow as tf

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.converters.tflite import run_by
from harnesses.evaluation.program import Program
from lowering import export


def _convert(program: Program, folder: pathlib.Path) -> Run:
    model = export.to_tflite(allow_flex=True, **program.export_options())
    (folder / "model.tflite").write_bytes(model)
    # LiteRT's package has no kernels of TensorFlow.
    return run_by(tf.lite.Interpreter(model_content=model))


CONVERTER = Converter(
    "TF Lite + Flex",
    "`export.to_tflite` with `allow_flex=True`; the interpreter of TensorFlow runs it.",
    _convert,
)
