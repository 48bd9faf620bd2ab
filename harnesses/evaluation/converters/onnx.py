"""ONNX."""

import pathlib
from collections.abc import Sequence

import numpy as np

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program
from lowering import export


def run_file(path: pathlib.Path) -> Run:
    """Runs a model in onnxruntime; inputs and outputs are in the order of the model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(path), options, providers=providers)

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        names = [node.name for node in session.get_inputs()]
        return session.run(None, dict(zip(names, inputs, strict=True)))

    return run


def _convert(program: Program, folder: pathlib.Path) -> Run:
    path = folder / "model.onnx"
    path.write_bytes(export.to_onnx(**program.export_options()))
    return run_file(path)


CONVERTER = Converter("ONNX", "`export.to_onnx`; onnxruntime runs it.", _convert)
