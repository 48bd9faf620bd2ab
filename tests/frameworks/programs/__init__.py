"""Small programs of other people's libraries, with random weights, one module for each library."""

import dataclasses
import importlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

# How a format of `lowering.export` answers a program that its runtime cannot run: the type of the
# error, and a pattern of its message.
Refusal = tuple[type[Exception], str]


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a library.

    Attributes:
      fun: a JAX function of arrays in pytrees.
      args: its arguments.
      tolerance: how much a result may differ, relative to the largest number in it.
      differentiable: whether JAX can differentiate it in reverse by its first argument.
      refusals: what exports raise, by the name of the format.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    tolerance: float = 1e-4
    differentiable: bool = False
    refusals: Mapping[str, Refusal] = dataclasses.field(default_factory=dict)


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
