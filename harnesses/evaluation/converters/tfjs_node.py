"""TF.js in Node."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator

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


def loads(
    backend: str,
) -> Callable[[Program, pathlib.Path], contextlib.AbstractContextManager[Run]]:
    """What loads a model in a process of Node, for a backend."""

    @contextlib.contextmanager
    def load(_: Program, folder: pathlib.Path) -> Iterator[Run]:
        with node.Node() as process:
            yield by_name(lambda inputs: process.run(folder / tfjs.FOLDER, inputs, backend=backend))

    return load


CONVERTER = Converter(
    "TF.js (Node)",
    "`export.to_tfjs`; TF.js runs it in Node, in JavaScript.",
    loads("cpu"),
    write=tfjs.write,
    missing=missing,
)
