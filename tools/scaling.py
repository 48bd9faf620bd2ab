"""Simulates how a sweep scales to many workers of a cluster, from the recorded times of its cells.

    python -m tools.scaling sweep.sqlite

writes g3doc/scaling.md and g3doc/scaling.svg. The simulation deals out batches as
`harnesses/engines/ray.py` does.
"""

import argparse
import collections
import contextlib
import heapq
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import jinja2

from harnesses.engines.ray import take_batch
from results.files import DatabaseError, explained, open_for_reading
from tools.terminal import failed, run

G3DOC = pathlib.Path(__file__).parents[1] / "g3doc"

# How long a worker takes to start and to import everything, in seconds, and how long the process
# that takes results spends on those of a task, nearly all of it until they are on the disk. Both as
# measured on two cores of a virtual machine.
START = 8.0
TAKE = 0.004

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Simulated(NamedTuple):
    """A simulated sweep.

    Attributes:
      workers: how many workers there are.
      seconds: how long the sweep takes.
      working: which share of the time of workers goes into tasks.
      taking: which share of the time the process that takes results is busy.
    """

    workers: int
    seconds: float
    working: float
    taking: float


def tasks(path: pathlib.Path) -> tuple[dict[tuple[str, str], float], int]:
    """The tasks of the largest sweep in a file, and its number of cells.

    Returns:
      How many seconds each task takes, by harness and variant, the longest first; and the number.

    Raises:
      DatabaseError: if the file cannot be used, or no cell in it has taken any time.
    """
    with contextlib.closing(open_for_reading(path)) as connection, explained(path):
        found = connection.execute(
            "SELECT harness, variant, seconds FROM results WHERE sweep = (SELECT sweep FROM "
            "results GROUP BY sweep ORDER BY COUNT(*) DESC LIMIT 1) ORDER BY harness, variant"
        ).fetchall()
    if not any(time for *_, time in found):
        raise DatabaseError(f"{path} has no times of cells")
    seconds: dict[tuple[str, str], float] = collections.defaultdict(float)
    for harness, variant, time in found:
        seconds[harness, variant] += time
    return dict(sorted(seconds.items(), key=lambda task: -task[1])), len(found)


def simulate(times: Sequence[float], workers: int) -> Simulated:
    """Simulates a sweep.

    Args:
      times: how long each task takes.
      workers: how many workers there are.
    """
    waiting = collections.deque(sorted(times, reverse=True))
    # When each worker has started or ends a task, and the rest of its batch.
    events: list[tuple[float, int, list[float]]] = [(START, w, []) for w in range(workers)]
    heapq.heapify(events)
    free = 0.0
    first = [True] * workers
    while events:
        now, number, batch = heapq.heappop(events)
        if not first[number]:
            free = max(free, now) + TAKE
        first[number] = False
        if batch:
            heapq.heappush(events, (now + batch[0], number, batch[1:]))
        elif waiting:
            batch = take_batch(waiting, workers, float)
            # The next batch is sent when the results of the last one have been taken.
            heapq.heappush(events, (max(now, free) + batch[0], number, batch[1:]))
    end = max(free, START)
    return Simulated(workers, end, sum(times) / (workers * end), len(times) * TAKE / end)


def curve(simulated: Iterable[Simulated], base: float) -> list[tuple[float, float]]:
    """The speed-ups as points of the plot, whose axes are logarithmic."""
    return [_point(s.workers, base / s.seconds) for s in simulated]


def _point(workers: float, speed: float) -> tuple[float, float]:
    return round(60 + 180 * math.log10(workers), 1), round(330 - 95 * math.log10(speed), 1)


def render(seconds: Mapping[tuple[str, str], float], cells: int) -> dict[str, str]:
    """The document and its plot, by file name; the arguments are what `tasks` returns."""
    times = list(seconds.values())
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(G3DOC / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    simulated = [simulate(times, workers) for workers in WORKERS]
    values = {
        "simulated": simulated,
        "times": times,
        "longest": list(seconds.items())[:5],
        "cells": cells,
        "start": START,
        "take": TAKE,
        "curve": curve(simulated, sum(times)),
        "ideal": [_point(n, n) for n in WORKERS],
        "ticks": [(n, _point(n, n)) for n in (1, 10, 100, 1000)],
    }
    names = ("scaling.md", "scaling.svg")
    return {name: environment.get_template(f"{name}.jinja").render(values) for name in names}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.scaling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", type=pathlib.Path, metavar="DATABASE")
    args = parser.parse_args(argv)
    try:
        documents = render(*tasks(args.database))
    except DatabaseError as error:
        return failed(error)
    for name, text in documents.items():
        (G3DOC / name).write_text(text)
    return 0


if __name__ == "__main__":
    run(main)
