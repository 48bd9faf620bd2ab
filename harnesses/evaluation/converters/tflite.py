"""TF Lite."""

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

from harnesses.evaluation.converters.converter import Converter, Run, by_name
from harnesses.evaluation.program import Program
from lowering import export

FILE = "model.tflite"


def run_by(interpreter: Any) -> Run:
    """Runs the only signature of a model in an interpreter, whose inputs are x0, x1 and so on."""
    runner = interpreter.get_signature_runner()
    return by_name(lambda inputs: runner(**inputs))


def write(program: Program, folder: pathlib.Path) -> None:
    """Writes a model with builtin ops alone."""
    (folder / FILE).write_bytes(export.to_tflite(**program.export_options()))


@contextlib.contextmanager
def _load(_: Program, folder: pathlib.Path) -> Iterator[Run]:
    from ai_edge_litert.interpreter import Interpreter

    yield run_by(Interpreter(model_path=str(folder / FILE)))


CONVERTER = Converter(
    "TF Lite", "`export.to_tflite`; LiteRT's interpreter runs it.", _load, write=write
)
