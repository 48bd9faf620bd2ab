"""Sweeps: an engine runs cells, and a database gets every result as it comes."""

import contextlib
import dataclasses
import hashlib
import itertools
import math
import pathlib
import platform
import threading
from collections.abc import Callable, Mapping, Sequence

import jax
import jaxlib
import numpy as np
import tensorflow as tf

from harnesses import cell
from harnesses.cell import DEVICES, Cell, Result, Verdict
from harnesses.database import Database, Row, Versions, as_text
from harnesses.engines import Catalogue, Engine, Job, Task
from harnesses.engines.local import LocalEngine
from harnesses.harness import Harness, all_harnesses
from harnesses.selection import Selection, matches
from harnesses.shards import Shard, take
from harnesses.times import Times
from harnesses.turn import TURN
from harnesses.variants import PLAIN, VARIANTS
from limitations import Limitation, all_limitations
from lowering.targets import TARGETS
from results import locks

# How many seconds go into a task beside its cells, whose times are recorded: JAX makes the program
# and computes what is expected.
_OF_JAX = 0.05


@dataclasses.dataclass(frozen=True)
class Report:
    """The results of a sweep.

    Attributes:
      rows: the result of each cell.
      unused: limitations that cover no cell, each with its primitive.
      complete: whether every selected cell has been run.
    """

    rows: Sequence[Row]
    unused: Sequence[tuple[str, Limitation]]
    complete: bool

    @property
    def variants(self) -> int:
        """How many cells are of variants that JAX can make."""
        return sum(r.variant != PLAIN and r.verdict != Verdict.NO_VARIANT for r in self.rows)

    def count(self, verdict: Verdict) -> int:
        """How many cells got a verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def stale(self) -> int:
        """How many cells are stale, and how many limitations cover no cell."""
        return self.count(Verdict.STALE) + len(self.unused)

    @property
    def is_green(self) -> bool:
        """Whether all cells were run, each is equal or limited, and no limitation is stale."""
        return self.complete and not self.count(Verdict.UNEXPECTED) and not self.stale


def versions() -> Versions:
    """The versions of the packages and of Python in this process."""
    return Versions(
        jax=jax.__version__,
        jaxlib=jaxlib.__version__,
        tensorflow=tf.__version__,
        numpy=np.__version__,
        python=platform.python_version(),
    )


def fingerprint() -> str:
    """A hash of the sources that results depend on."""
    root = pathlib.Path(__file__).parents[1]
    digest = hashlib.sha256()
    for room in ("harnesses", "limitations", "lowering"):
        for path in sorted((root / room).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def sweep(
    selection: Selection,
    path: str | pathlib.Path,
    *,
    catalogue: Catalogue = all_harnesses,
    engine: Engine | None = None,
    workers: int | None = None,
    timeout: float = 120,
    fresh: bool = False,
    runs: pathlib.Path | None = None,
    shard: Shard | None = None,
    times: Times | None = None,
    turn: str = TURN,
    stop: threading.Event | None = None,
    on_start: Callable[[int, int, float], None] = lambda total, done, seconds: None,
    on_results: Callable[[Sequence[Row], float], None] = lambda rows, seconds: None,
) -> Report:
    """Runs the selected cells and records their results.

    A sweep that was interrupted is continued by the next sweep of the same selection, sources and
    versions.

    Args:
      selection: which cells to run.
      path: the SQLite file that results are recorded in.
      catalogue: returns the harnesses by name; a function of a module, as workers import it.
      engine: what runs the cells; processes of this machine by default.
      workers: how many such processes there are; one per core by default.
      timeout: seconds after which a task counts as hung.
      fresh: whether to start anew instead of continuing an interrupted sweep.
      runs: a directory in which results of graphs are cached; see `RunsInDirectory`.
      shard: runs only this part of the selection.
      times: by which shards are balanced, and long tasks come first; the committed table by
        default.
      turn: which part is run of what is selected by turns; a sweep that follows a finished one of
        the same file takes another part.
      stop: interrupts the sweep when it is set.
      on_start: called with the number of cells, the number of those that have been run before, and
        how many seconds of one worker the others should take.
      on_results: called with new results after they have been recorded, and how many seconds they
        should have taken.

    Raises:
      SelectionError: if a filter selects nothing.
      DatabaseError: if the file cannot be used, or no longer be written; or if another process is
        at the same sweep.
    """
    stop = stop or threading.Event()
    harnesses = catalogue()
    times = times or Times.committed()
    selection.cells(harnesses, times=times)  # Raises an error before anything is recorded.

    def expected(task: Task) -> float:
        return sum(times.of(harnesses[c.harness].primitive, c) for c in task)

    def whole(task: Task) -> float:
        return expected(task) + _OF_JAX

    same = f"{versions()} {as_text(selection.as_data())} {shard or ''}"
    with locks.held(path, same), contextlib.closing(Database(path)) as database:
        sources = fingerprint()
        sweep_id, number = database.begin(
            versions(), selection.as_data(), sources, fresh, str(shard or "")
        )
        selected = selection.cells(harnesses, f"{turn} {number}", times)
        database.count(sweep_id, sum(map(len, selected.values())))
        if shard is not None:
            selected = take(shard, selected, harnesses, times)
        done = {
            Cell(r.harness, r.mode, r.target, r.device, r.variant) for r in database.rows(sweep_id)
        }
        left = [[c for c in cells if c not in done] for cells in selected.values()]
        tasks = [
            list(task)
            for cells in left
            for _, task in itertools.groupby(cells, key=lambda c: c.variant)
        ]
        # The longest first, so that no worker begins one when the others end.
        tasks.sort(key=expected, reverse=True)
        total = sum(map(len, selected.values()))
        on_start(total, total - sum(map(len, tasks)), sum(map(whole, tasks)))
        job = Job(catalogue, harnesses, runs, expected, timeout, stop)
        with contextlib.closing((engine or LocalEngine(workers)).run(tasks, job)) as batches:
            for results in batches:
                rows = [row_of(harnesses[result.cell.harness], result) for result in results]
                database.record(sweep_id, rows)
                on_results(rows, whole([result.cell for result in results]))
        if not stop.is_set():
            database.finish(sweep_id)
        return Report(
            rows=database.rows(sweep_id),
            unused=unused_limitations(harnesses, selection.primitives),
            complete=not stop.is_set(),
        )


def unused_limitations(
    catalogue: Mapping[str, Harness], primitives: Sequence[str] = ("*",)
) -> list[tuple[str, Limitation]]:
    """The limitations of `primitives`, for this processor, that cover no cell on any device."""
    limited = {p: ls for p, ls in all_limitations().items() if matches(p, primitives)}
    used = {
        id(cell.find_limitation(harness, c))
        for harness in catalogue.values()
        if harness.primitive in limited
        for variant in VARIANTS
        for c in cell.cells_of(harness, targets=tuple(TARGETS), devices=DEVICES, variant=variant)
    }
    return [
        (p, limitation)
        for p, ls in limited.items()
        for limitation in ls
        if id(limitation) not in used and limitation.is_of_this_processor
    ]


def row_of(harness: Harness, result: Result) -> Row:
    """The result of a cell of a harness as it is recorded."""
    error = float(result.error)
    return Row(
        harness=harness.name,
        primitive=harness.primitive,
        dtype=harness.dtype_name,
        mode=result.cell.mode,
        target=result.cell.target,
        device=result.cell.device,
        variant=result.cell.variant,
        outcome=str(result.outcome),
        verdict=str(result.verdict),
        error=math.inf if math.isnan(error) else error,
        # Errors may quote bytes that are no text, which SQLite would not take.
        message=result.message.encode(errors="backslashreplace").decode(),
        limitation=result.limitation,
        seconds=result.seconds,
        ulps=result.ulps,
    )
