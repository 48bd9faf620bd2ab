"""The interface of a converter."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np

from harnesses.evaluation.program import Program

# A converted model in its runtime: maps the leaves of the inputs to those of the result. A runtime
# without a dtype returns another one that holds the same numbers.
Run = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def _no_reason(*_: object) -> str:
    return ""


@dataclasses.dataclass(frozen=True)
class Converter:
    """A way from a JAX model to a runtime.

    Attributes:
      name: the title of its column.
      about: what is converted by what, and which runtime runs it; a sentence.
      load: `load(program, folder)` is a context with a function that runs the model in a folder.
      write: `write(program, folder)` writes the model to an empty folder. Converters that have the
        same one run the same files. None if a model has no files: `load` converts it.
      compared: whether it is not this project's, but there to compare.
      missing: returns why it cannot be run here, or an empty string if it can.
      lacks: `lacks(program, message)` returns what the runtime itself lacks for a program that it
        fails on with this message, or an empty string if the failure is not the runtime's own.
    """

    name: str
    about: str
    load: Callable[[Program, pathlib.Path], AbstractContextManager[Run]]
    write: Callable[[Program, pathlib.Path], None] | None = None
    compared: bool = False
    missing: Callable[[], str] = _no_reason
    lacks: Callable[[Program, str], str] = _no_reason


def by_name(run: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]) -> Run:
    """Runs a model by a function from inputs x0, x1, ... to outputs y0, y1, ..., all by name."""

    def run_in_order(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = run({f"x{i}": x for i, x in enumerate(inputs)})
        return [results[f"y{i}"] for i in range(len(results))]

    return run_in_order
