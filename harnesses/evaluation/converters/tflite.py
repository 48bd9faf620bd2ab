"""TF Lite."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program
from lowering import export


def run_by(interpreter: Any) -> Run:
    """Runs the only signature of a model in an interpreter, whose inputs are x0, x1 and so on."""
    runner = interpreter.get_signature_runner()

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = runner(**{f"x{i}": x for i, x in enumerate(inputs)})
        return [results[f"y{i}"] for i in range(len(results))]

    return run


def _convert(program: Program, folder: pathlib.Path) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    model = export.to_tflite(**program.export_options())
    (folder / "model.tflite").write_bytes(model)
    return run_by(Interpreter(model_content=model))


CONVERTER = Converter("TF Lite", "`export.to_tflite`; LiteRT's interpreter runs it.", _convert)
