"""What benches have measured, in the same files as the results of sweeps.

A bench is one run of a command. Its figures have a program, such as "resnet50, batch 1", a name,
such as "graph, tf / jax.jit", and a median with the quarter and the three quarters of the turns.
"""

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from results.files import explained, open_for_reading, open_for_writing


@dataclasses.dataclass(frozen=True)
class Measured:
    """A number that was measured several times.

    Attributes:
      value: the median.
      low: a quarter of the turns is below it.
      high: a quarter of the turns is above it.
      unit: such as "ms"; empty for a ratio.
    """

    value: float
    low: float
    high: float
    unit: str = ""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.low == self.high:
            return f"{self.value:.4g}{unit}"
        return f"{self.value:.3f}{unit} ({self.low:.3f} to {self.high:.3f})"


@dataclasses.dataclass(frozen=True)
class Bench:
    """A run of a bench.

    Attributes:
      command: what repeats it.
      machine: the processor, and how many there are.
      versions: those of Python and of packages, by name.
      started: when, in UTC.
    """

    command: str
    machine: str
    versions: Mapping[str, str]
    started: str


class Place(NamedTuple):
    """What tells figures apart."""

    program: str
    figure: str


Figures = Mapping[Place, tuple[Bench, Measured]]

# A figure is slower if even its quickest quarter is so many times the slowest quarter of before.
NOTICEABLE = 1.05


def record(path: str | pathlib.Path, bench: Bench, figures: Mapping[Place, Measured]) -> None:
    """Adds a bench and its figures to a file, which is made if there is none.

    Raises:
      DatabaseError: if the file cannot be used.
    """
    with contextlib.closing(open_for_writing(path)) as connection, explained(path):
        connection.execute("BEGIN IMMEDIATE")
        cursor = connection.execute(
            "INSERT INTO benches (command, machine, versions, started) VALUES (?, ?, ?, ?)",
            (bench.command, bench.machine, json.dumps(dict(bench.versions)), bench.started),
        )
        connection.executemany(
            "INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    cursor.lastrowid,
                    *place,
                    measured.value,
                    measured.low,
                    measured.high,
                    measured.unit,
                )
                for place, measured in figures.items()
            ],
        )
        connection.execute("COMMIT")


def read(path: str | pathlib.Path) -> Figures:
    """The figures of a file, each as it was measured last.

    Raises:
      DatabaseError: if the file cannot be used.
    """
    found: dict[Place, tuple[Bench, Measured]] = {}
    with contextlib.closing(open_for_reading(path)) as connection, explained(path):
        rows = connection.execute(
            "SELECT command, machine, versions, started, program, figure, value, low, high, unit "
            "FROM figures JOIN benches ON benches.id = bench "
            "ORDER BY started, bench, program, figure"
        )
        for command, machine, versions, started, program, figure, *numbers in rows:
            bench = Bench(command, machine, json.loads(versions), started)
            place = Place(program, figure)
            found.pop(place, None)
            found[place] = bench, Measured(*numbers)
    return found


def slower(old: Figures, new: Figures) -> list[tuple[Place, Measured, Measured]]:
    """The figures of which more than before is beyond their spread, the worst first.

    All figures are times, sizes and ratios of them, of which less is better. Figures in units are
    compared on the same machine only; ratios on all.
    """
    return _changed(old, new, lambda was, now: now.low > NOTICEABLE * was.high)


def faster(old: Figures, new: Figures) -> list[tuple[Place, Measured, Measured]]:
    """The figures of which less than before is beyond their spread."""
    return _changed(old, new, lambda was, now: NOTICEABLE * now.high < was.low)


def _changed(
    old: Figures, new: Figures, is_changed: Callable[[Measured, Measured], bool]
) -> list[tuple[Place, Measured, Measured]]:
    found = []
    for place, (bench, now) in new.items():
        before, was = old.get(place, (None, None))
        if was is None or before is None or was.unit != now.unit:
            continue
        is_comparable = not now.unit or before.machine == bench.machine
        if is_comparable and is_changed(was, now):
            found.append((place, was, now))
    return sorted(found, key=lambda of: of[1].value / of[2].value if of[2].value else 0)


def common(old: Figures, new: Figures) -> Iterable[Place]:
    """The figures that both files have."""
    return old.keys() & new.keys()
