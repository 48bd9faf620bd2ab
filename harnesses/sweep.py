"""Sweeps: worker processes run cells, so that a crash or a hang of one cell harms no other.

A task is a harness with all cells of a variant, as JAX computes the expected results once for them.
If the worker dies or does not finish in time, each cell becomes a task of its own, so that only the
cell that fails counts as crashed or hung.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import itertools
import math
import multiprocessing
import multiprocessing.forkserver
import os
import pathlib
import platform
import queue
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool

import jax
import jaxlib
import numpy as np
import pebble
import tensorflow as tf

from harnesses import cell
from harnesses.cell import DEVICES, Cell, Outcome, Result, Verdict
from harnesses.database import Database, Row, Versions
from harnesses.harness import Harness, all_harnesses
from harnesses.runs import Runs, RunsInDirectory
from harnesses.selection import Selection, matches
from harnesses.shards import Shard, take
from harnesses.times import Times
from harnesses.variants import PLAIN, VARIANTS
from limitations import Limitation, all_limitations
from lowering.targets import TARGETS

Catalogue = Callable[[], Mapping[str, Harness]]

# The environment of workers. They share the cores, so none of them starts threads of its own.
# Libraries read it when they are loaded. Results do not depend on it: what they do depend on, each
# worker sets in JAX itself.
_ENVIRONMENT = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
# A worker is replaced after this many tasks. By then it has about 2 GiB of compiled programs, which
# JAX and TensorFlow never free.
_TASKS_PER_WORKER = 250
# How many pools may break, one after the other, without any result.
_ATTEMPTS = 3


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
    workers: int | None = None,
    timeout: float = 120,
    fresh: bool = False,
    runs: pathlib.Path | None = None,
    shard: Shard | None = None,
    times: Times | None = None,
    stop: threading.Event | None = None,
    on_start: Callable[[int, int], None] = lambda total, done: None,
    on_results: Callable[[Sequence[Row]], None] = lambda rows: None,
) -> Report:
    """Runs the selected cells and records their results.

    A sweep that was interrupted is continued by the next sweep of the same selection, sources and
    versions.

    Args:
      selection: which cells to run.
      path: the SQLite file that results are recorded in.
      catalogue: returns the harnesses by name; a function of a module, as workers import it.
      workers: how many processes run cells; one per core by default.
      timeout: seconds after which a task counts as hung.
      fresh: whether to start anew instead of continuing an interrupted sweep.
      runs: a directory in which results of graphs are cached; see `RunsInDirectory`.
      shard: runs only this part of the selection.
      times: what shards are balanced by; the committed table by default.
      stop: interrupts the sweep when it is set.
      on_start: called with the number of cells, and the number of those that have been run before.
      on_results: called with new results after they have been recorded.

    Raises:
      SelectionError: if a filter selects nothing.
      DatabaseError: if the file cannot be used, or no longer be written.
    """
    stop = stop or threading.Event()
    harnesses = catalogue()
    selection.cells(harnesses)  # Raises an error before anything is recorded.
    with contextlib.closing(Database(path)) as database:
        sources = fingerprint()
        sweep_id, turn = database.begin(
            versions(), selection.as_data(), sources, fresh, str(shard or "")
        )
        selected = selection.cells(harnesses, f"{sources} {turn}")
        database.count(sweep_id, sum(map(len, selected.values())))
        if shard is not None:
            selected = take(shard, selected, harnesses, times or Times.committed())
        done = {
            Cell(r.harness, r.mode, r.target, r.device, r.variant) for r in database.rows(sweep_id)
        }
        on_start(sum(map(len, selected.values())), len(done))
        left = [[c for c in cells if c not in done] for cells in selected.values()]
        tasks = [
            list(task)
            for cells in left
            for _, task in itertools.groupby(cells, key=lambda c: c.variant)
        ]
        initargs = (catalogue, runs)
        for results in _run(tasks, harnesses, initargs, workers or _cores(), timeout, stop):
            rows = [_row(harnesses[result.cell.harness], result) for result in results]
            database.record(sweep_id, rows)
            on_results(rows)
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
    """The limitations of `primitives` that cover no cell on any device."""
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
        if id(limitation) not in used
    ]


Task = list[Cell]  # Cells of one harness.


def _run(
    tasks: Iterable[Task],
    harnesses: Mapping[str, Harness],
    initargs: tuple[Catalogue, pathlib.Path | None],
    workers: int,
    timeout: float,
    stop: threading.Event,
) -> Iterator[list[Result]]:
    """Runs tasks in worker processes; yields the results of each task as it ends."""
    waiting = collections.deque(tasks)
    attempts = 0
    while waiting and not stop.is_set():
        pool = pebble.ProcessPool(
            min(workers, len(waiting)),
            max_tasks=_TASKS_PER_WORKER,
            initializer=_start_worker,
            initargs=initargs,
            context=_processes(),
        )
        try:
            for results in _run_in_pool(pool, waiting, harnesses, 2 * workers, timeout, stop):
                attempts = 0
                yield results
        except RuntimeError:  # A worker died outside of any task, and the pool with it.
            attempts += 1
            if attempts == _ATTEMPTS:
                raise
        finally:
            pool.stop()
            pool.join()


def _processes() -> multiprocessing.context.BaseContext:
    """How workers are started: if possible as forks of a process that has imported everything.

    That process, the fork server, lives as long as the caller. All workers inherit the environment
    that it was started with, including those that replace others.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with _environment(_ENVIRONMENT):
        multiprocessing.forkserver.ensure_running()
    return context


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """A context in which processes are started with further environment variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run_in_pool(
    pool: pebble.ProcessPool,
    waiting: collections.deque[Task],
    harnesses: Mapping[str, Harness],
    limit: int,
    timeout: float,
    stop: threading.Event,
) -> Iterator[list[Result]]:
    """Runs the waiting tasks, of which the pool has at most `limit` at a time."""
    finished: queue.SimpleQueue[concurrent.futures.Future] = queue.SimpleQueue()
    running: dict[concurrent.futures.Future, Task] = {}
    try:
        while (waiting or running) and not stop.is_set():
            while waiting and len(running) < limit:
                future = pool.schedule(_run_task, (waiting[0],), timeout=timeout)
                running[future] = waiting.popleft()
                future.add_done_callback(finished.put)
            try:
                done = finished.get(timeout=0.2)
            except queue.Empty:
                continue
            error = done.exception()
            if isinstance(error, BrokenProcessPool):
                raise error
            task = running.pop(done)
            if error is None:
                yield done.result()
            elif isinstance(error, TimeoutError | pebble.ProcessExpired) and len(task) > 1:
                waiting.extendleft([c] for c in task)
            else:
                yield [_judge_failure(harnesses[c.harness], c, error) for c in task]
    finally:
        waiting.extend(running.values())


def _judge_failure(harness: Harness, c: Cell, error: BaseException) -> Result:
    """The result of a cell whose task has returned none."""
    if isinstance(error, TimeoutError):
        return cell.judge(harness, c, Outcome.TIMEOUT, "no result in time")
    if isinstance(error, pebble.ProcessExpired):
        code = error.exitcode
        how = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return cell.judge(harness, c, Outcome.CRASH, f"the process died {how}")
    return cell.judge(harness, c, Outcome.HARNESS_ERROR, f"{type(error).__name__}: {error}")


# The harnesses and the cache of results, in a worker.
_harnesses: Mapping[str, Harness] = {}
_runs: Runs | None = None


def _start_worker(catalogue: Catalogue, runs: pathlib.Path | None) -> None:
    """Prepares a worker, outside of the time of any cell.

    It makes the settings that results depend on, so that these do not depend on how the worker was
    started.
    """
    global _harnesses, _runs
    os.environ.update(_ENVIRONMENT)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    # Harnesses print to standard error, as TensorFlow and XLA do, not into the report.
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    _harnesses = catalogue()
    _runs = None if runs is None else RunsInDirectory(runs)


def _run_task(task: Task) -> list[Result]:
    """Runs cells of one harness, in a worker."""
    return list(cell.run(_harnesses[task[0].harness], task, _runs))


def _row(harness: Harness, result: Result) -> Row:
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
        message=result.message,
        limitation=result.limitation,
        seconds=result.seconds,
        ulps=result.ulps,
    )


def _cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
