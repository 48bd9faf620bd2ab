"""ONNX by jax2onnx, which may be installed in a Python environment of its own.

As a program, it converts a model in that environment:

    python -m harnesses.evaluation.converters.jax2onnx PROGRAM FILE

PROGRAM is JSON: the case, and what the sizes of symbolic dimensions are multiples of.
"""

import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import jax

from harnesses.evaluation.converters.converter import Converter
from harnesses.evaluation.converters.onnx import FILE, load
from harnesses.evaluation.program import Case, Program

# The environment variable with the Python that has jax2onnx; by default that of this process.
PYTHON = "LOWERING_JAX2ONNX_PYTHON"

# The line of a traceback with the error; hints may follow it.
_ERROR = re.compile(r"[\w.]*(Error|Exception)\b")
_ROOT = pathlib.Path(__file__).parents[3]


def _missing() -> str:
    if PYTHON in os.environ or importlib.util.find_spec("jax2onnx"):
        return ""
    return "jax2onnx is not installed"


def _write(program: Program, folder: pathlib.Path) -> None:
    described = [dataclasses.asdict(program.case), dict(program.multiples)]
    python = os.environ.get(PYTHON, sys.executable)
    # Without the filter, the last line of a traceback has the error.
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "JAX_TRACEBACK_FILTERING": "off"}
    command = [python, "-m", __name__, json.dumps(described), str(folder / FILE)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    if ended.returncode:
        lines = ended.stderr.strip().splitlines()
        errors = [line for line in lines if _ERROR.match(line)]
        raise RuntimeError((errors or lines)[-1])


def write_file(program: Program, path: str) -> None:
    """Writes the model of a program by jax2onnx."""
    from jax2onnx import to_onnx

    leaves, tree = jax.tree.flatten(program.specs)
    # While jax2onnx traces, layers of Flax cannot be initialized.
    params = program.params

    def function(*inputs: jax.Array) -> list[jax.Array]:
        return jax.tree.leaves(program.model.apply(params, jax.tree.unflatten(tree, inputs)))

    to_onnx(function, leaves, return_mode="file", output_path=path)


def _main(described: str, path: str) -> None:
    case, multiples = json.loads(described)
    case["symbolic"] = tuple(case["symbolic"])
    write_file(Program(Case(**case), multiples), path)


CONVERTER = Converter(
    "jax2onnx",
    "[jax2onnx](https://pypi.org/project/jax2onnx/); onnxruntime runs it. The time includes the "
    "start of its process.",
    load,
    write=_write,
    compared=True,
    missing=_missing,
)

if __name__ == "__main__":
    _main(*sys.argv[1:])
