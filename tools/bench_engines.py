"""Measures how fast Ray runs the cells of a sweep, against the processes of this machine.

    python -m tools.bench_engines --workers 2 --primitive 'reduce_*' --mode graph

Each engine runs the same cells into a new file, in turns, as often as --rounds says; the median
counts. Efficiency is that of the time from the first result to the last. Before it, processes
start and import everything, and Ray itself starts; after it, they end. A sweep pays that once,
however long it is. With --least the exit code is 1 if Ray has less than this share of the speed.
"""

import argparse
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax

from harnesses.engines import Catalogue, Engine, EngineError
from harnesses.engines.local import LocalEngine
from harnesses.engines.ray import RayEngine
from harnesses.harness import all_harnesses
from harnesses.selection import Selection, SelectionError
from harnesses.sweep import sweep
from tools.terminal import failed, run, standard_error_to


class Measured(NamedTuple):
    """How long a sweep took, in seconds.

    Attributes:
      whole: from its start to its end.
      running: from its first result to its last.
      cells: how many cells it ran.
    """

    whole: float
    running: float
    cells: int


def measure(selection: Selection, engine: Engine, catalogue: Catalogue = all_harnesses) -> Measured:
    """Runs the cells of a selection by an engine.

    Raises:
      SelectionError: if a filter selects nothing, or only what gives a single result.
    """
    came: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        report = sweep(
            selection,
            pathlib.Path(directory, "sweep.sqlite"),
            catalogue=catalogue,
            engine=engine,
            on_results=lambda rows, seconds: came.append(time.perf_counter()),
        )
        end = time.perf_counter()
    if len(came) < 2:
        raise SelectionError("there is no time between results, as there is only one; select more")
    return Measured(end - start, came[-1] - came[0], len(report.rows))


def compare(
    engines: Mapping[str, Callable[[], Engine]],
    selection: Selection,
    rounds: int,
    catalogue: Catalogue = all_harnesses,
) -> dict[str, Measured]:
    """The median of what each engine needs for the same cells, by name, in turns."""
    found: dict[str, list[Measured]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, make in engines.items():
            found[name].append(measure(selection, make(), catalogue))
    return {
        name: Measured(*map(statistics.median, zip(*measured, strict=True)))
        for name, measured in found.items()
    }


def efficiency(local: Measured, ray: Measured) -> float:
    """The speed of Ray as a share of that of local processes, once they are running."""
    return local.running / ray.running


def main(argv: Sequence[str] | None = None, catalogue: Catalogue = all_harnesses) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench_engines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--primitive", action="append", metavar="PATTERN")
    parser.add_argument("--mode", action="append", metavar="MODE")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="2 by default")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="1 by default")
    parser.add_argument("--ray", metavar="ADDRESS", help="of a cluster; one is started by default")
    parser.add_argument("--least", type=float, metavar="SHARE", help="such as 0.9")
    args = parser.parse_args(argv)
    if min(args.workers, args.rounds) < 1:
        parser.error("--workers and --rounds take positive numbers")
    selection = Selection(
        primitives=args.primitive or ("reduce_*",),
        modes=args.mode or ("graph",),
        share="none",
        per_harness="all",
    )
    engines: dict[str, Callable[[], Engine]] = {
        "local": lambda: LocalEngine(args.workers),
        "ray": lambda: RayEngine(args.ray, args.workers),
    }
    with (
        tempfile.TemporaryDirectory() as directory,
        # Before the first engine starts, as its processes keep what standard error is.
        standard_error_to(pathlib.Path(directory, "log")) as terminal,
        jax.enable_x64(True),
    ):
        try:
            measured = compare(engines, selection, args.rounds, catalogue)
        except (SelectionError, EngineError) as error:
            return failed(error, terminal)
    for name, of_engine in measured.items():
        print(
            f"{name:6} {of_engine.cells:.0f} cells in {of_engine.whole:.1f} s, "
            f"{of_engine.running:.1f} s of them from the first result to the last"
        )
    share = efficiency(measured["local"], measured["ray"])
    print(f"efficiency of Ray with {args.workers} workers: {share:.2f}")
    return 1 if args.least is not None and share < args.least else 0


if __name__ == "__main__":
    run(main)
