"""TF Lite with kernels of TensorFlow."""

import contextlib
import pathlib
from collections.abc import Iterator

import tensorflow as tf

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.converters.tflite import FILE, run_by
from harnesses.evaluation.program import Program
from lowering import export


def _write(program: Program, folder: pathlib.Path) -> None:
    model = export.to_tflite(allow_flex=True, **program.export_options())
    (folder / FILE).write_bytes(model)


@contextlib.contextmanager
def _load(_: Program, folder: pathlib.Path) -> Iterator[Run]:
    # LiteRT's package has no kernels of TensorFlow.
    yield run_by(tf.lite.Interpreter(model_path=str(folder / FILE)))


CONVERTER = Converter(
    "TF Lite + Flex",
    "`export.to_tflite` with `allow_flex=True`; the interpreter of TensorFlow runs it.",
    _load,
    write=_write,
)
