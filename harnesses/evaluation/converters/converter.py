"""What a converter is."""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from harnesses.evaluation.program import Program

# A converted model in its runtime: maps the leaves of the inputs to those of the result. A runtime
# without a dtype returns another one that holds the same numbers.
Run = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def _no_reason() -> str:
    return ""


@dataclasses.dataclass(frozen=True)
class Converter:
    """A way from a JAX model to a runtime.

    Attributes:
      name: the title of its column.
      about: what is converted by what, and which runtime runs it; a sentence.
      convert: `convert(program, folder)` writes the model to an empty folder, if it has files, and
        returns a function that runs it. It raises an error if it cannot.
      compared: whether it is not this project's, but there to compare.
      missing: returns why it cannot be run here, or an empty string if it can.
    """

    name: str
    about: str
    convert: Callable[[Program, pathlib.Path], Run]
    compared: bool = False
    missing: Callable[[], str] = _no_reason
