"""Engines run the tasks of a sweep: `local` in processes of this machine, `ray` on a cluster.

A task is cells of one harness and variant, as JAX computes the expected results once for them. What
all engines promise: each cell gets one result; a cell that crashes or hangs costs no other cell its
result; results are yielded as they come, and no more tasks are under way than workers need.
"""

import dataclasses
import pathlib
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Protocol

from harnesses.cell import Cell, Result
from harnesses.harness import Harness

Catalogue = Callable[[], Mapping[str, Harness]]
Task = list[Cell]


class EngineError(RuntimeError):
    """No worker can run anything, for the reason that the message gives."""


@dataclasses.dataclass(frozen=True)
class Job:
    """What an engine is to run tasks with.

    Attributes:
      catalogue: returns the harnesses by name; a function of a module, as workers import it.
      harnesses: the harnesses by name.
      runs: a directory in which results of graphs are cached; None for none.
      expected: how many seconds a task is expected to take.
      timeout: seconds after which a task counts as hung.
      stop: ends the run when it is set.
    """

    catalogue: Catalogue
    harnesses: Mapping[str, Harness]
    runs: pathlib.Path | None
    expected: Callable[[Task], float]
    timeout: float
    stop: threading.Event


class Engine(Protocol):
    """What runs tasks."""

    def run(self, tasks: Iterable[Task], job: Job) -> Generator[list[Result]]:
        """Runs tasks, those that come first before the others.

        Yields the results of some cells of one harness as they come. When the generator is closed,
        all workers end.

        Raises:
          EngineError: if no worker starts, or all of them end before they run anything.
        """
