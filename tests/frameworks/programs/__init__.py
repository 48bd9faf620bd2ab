"""Small programs of other people's libraries, with random weights, one module for each library."""

import dataclasses
import importlib
import pathlib
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a library.

    Attributes:
      fun: a JAX function of arrays in pytrees.
      args: its arguments.
      tolerance: how much a result may differ, relative to the largest number in it.
      differentiable: whether JAX can differentiate it in reverse by its first argument.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    tolerance: float = 1e-4
    differentiable: bool = False


_makers: dict[str, Callable[[], Program]] = {}


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    """Registers a function that makes a program; it imports its library when it is called."""
    library = make.__module__.rpartition(".")[2].removeprefix("of_")
    _makers[f"{library}-{make.__name__}"] = make
    return make


def makers() -> dict[str, Callable[[], Program]]:
    """The functions that make programs, by the names of the libraries and of the programs."""
    for path in sorted(pathlib.Path(__file__).parent.glob("of_*.py")):
        importlib.import_module(f"{__name__}.{path.stem}")
    return _makers
