"""ONNX."""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program
from lowering import export

FILE = "model.onnx"


def write(program: Program, folder: pathlib.Path) -> None:
    """Writes a model."""
    (folder / FILE).write_bytes(export.to_onnx(**program.export_options()))


@contextlib.contextmanager
def load(_: Program, folder: pathlib.Path) -> Iterator[Run]:
    """Runs a model in onnxruntime; inputs and outputs are in the order of the model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(folder / FILE), options, providers=providers)

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        names = [node.name for node in session.get_inputs()]
        return session.run(None, dict(zip(names, inputs, strict=True)))

    yield run


CONVERTER = Converter("ONNX", "`export.to_onnx`; onnxruntime runs it.", load, write=write)
