"""TF.js: what writes a model, and what its backends lack."""

import pathlib
import re

from harnesses.evaluation.program import Program
from lowering import export

FOLDER = "model"

_LACKING = re.compile(r"Kernel '(\w+)' not registered for backend 'wasm'")


def write(program: Program, folder: pathlib.Path) -> None:
    """Writes a graph model."""
    export.to_tfjs(path=folder / FOLDER, **program.export_options())


def lacks_by_wasm(_: Program, message: str) -> str:
    """The kernel that TF.js has not written for WebAssembly."""
    found = _LACKING.search(message)
    return f"TF.js has no {found[1]} for WebAssembly" if found else ""
