"""TensorFlow without XLA."""

import contextlib
import pathlib

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.converters.xla import to_graph
from harnesses.evaluation.program import Program


def _load(program: Program, _: pathlib.Path) -> contextlib.AbstractContextManager[Run]:
    return to_graph(program, "tf")


CONVERTER = Converter(
    "no xla",
    "`lowering.convert` with the target `tf`, whose ops need no XLA; TensorFlow runs the graph.",
    _load,
)
