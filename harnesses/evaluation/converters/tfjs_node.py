"""TF.js in Node."""

import pathlib
from collections.abc import Sequence

import numpy as np

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program
from lowering import export
from lowering.export.tfjs import node


def _missing() -> str:
    try:
        node.check_installed()
    except ImportError as error:
        return str(error)
    return ""


def _convert(program: Program, folder: pathlib.Path) -> Run:
    export.to_tfjs(directory=folder / "model", **program.export_options())

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = node.run(folder / "model", {f"x{i}": x for i, x in enumerate(inputs)})["cpu"]
        return [results[f"y{i}"] for i in range(len(results))]

    return run


CONVERTER = Converter(
    "TF.js (Node)",
    "`export.to_tfjs`; TF.js runs it in Node, on the processor.",
    _convert,
    missing=_missing,
)
