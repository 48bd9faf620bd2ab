"""TF.js in Node."""

import contextlib
import pathlib
from collections.abc import Iterator

from harnesses.evaluation.converters import tfjs
from harnesses.evaluation.converters.converter import Converter, Run, by_name
from harnesses.evaluation.program import Program
from lowering.export.tfjs import node


def missing() -> str:
    """Why TF.js cannot be run in Node here, or an empty string."""
    try:
        node.check_installed()
    except ImportError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def run_in_node(folder: pathlib.Path, backend: str) -> Iterator[Run]:
    """A context with a process of Node that runs a model by a backend."""
    with node.Node() as process:
        yield by_name(lambda inputs: process.run(folder / tfjs.FOLDER, inputs, backend=backend))


def _load(_: Program, folder: pathlib.Path) -> contextlib.AbstractContextManager[Run]:
    return run_in_node(folder, "cpu")


CONVERTER = Converter(
    "TF.js (Node)",
    "`export.to_tfjs`; TF.js runs it in Node, in JavaScript.",
    _load,
    write=tfjs.write,
    missing=missing,
)
