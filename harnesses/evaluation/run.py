"""Runs the evaluation: each model with each converter in a process of its own.

First JAX runs a model, to know whether it can trace it and what it computes. Then come the
converters; those that run the same files come one after the other, and the first writes them. A
process that crashes or hangs costs only its own cell.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import os
import pathlib
import queue
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pebble
import tensorflow as tf

from harnesses.evaluation.cells import run_converter, run_jax
from harnesses.evaluation.converters import CONVERTERS
from harnesses.evaluation.program import Case, Program
from harnesses.evaluation.results import JAX, Row


@dataclasses.dataclass(frozen=True)
class _Task:
    """A cell.

    Attributes:
      case: the case.
      converter: the converter, or `JAX`.
      call: runs it, in a process.
      following: the tasks that can be run once there is its row.
    """

    case: Case
    converter: str
    call: Callable[[], Row]
    following: Callable[[Row], Sequence["_Task"]]


def run(
    cells: Mapping[Case, Sequence[str]],
    *,
    workers: int,
    timeout: float,
    stop: threading.Event,
) -> Iterator[Row]:
    """Runs cells; yields their rows as they end, and one of JAX for each case.

    The converters do not run on what JAX cannot trace.

    Args:
      cells: the converters to run, by case.
      workers: how many processes run at a time.
      timeout: seconds after which a process counts as hung.
      stop: interrupts the run when it is set.
    """
    with tempfile.TemporaryDirectory() as path:
        waiting = collections.deque(
            _of_jax(case, names, pathlib.Path(path, str(i)))
            for i, (case, names) in enumerate(cells.items())
        )
        for task, row in _run_in_processes(waiting, workers, timeout, stop):
            yield row
            waiting.extendleft(reversed(task.following(row)))


def _of_jax(case: Case, names: Sequence[str], folder: pathlib.Path) -> _Task:
    """The task of JAX, which those of the converters follow; files are in a new folder."""
    expected = folder / "expected.npz"
    folder.mkdir()

    def following(row: Row) -> list[_Task]:
        if not row.ok:
            return []
        program = Program(case, row.multiples)
        return [
            _of_converters(program, group, expected, folder / str(i))
            for i, group in enumerate(_sharing(names))
        ]

    return _Task(case, JAX, functools.partial(run_jax, case, expected), following)


def _sharing(names: Sequence[str]) -> list[list[str]]:
    """Groups of converters that run the same files."""
    groups: dict[Any, list[str]] = {}
    for name in names:
        groups.setdefault(CONVERTERS[name].write or name, []).append(name)
    return list(groups.values())


def _of_converters(
    program: Program, names: Sequence[str], expected: pathlib.Path, folder: pathlib.Path
) -> _Task:
    """The task of a converter, which those of others that run the same files follow."""
    name, *others = names
    folder.mkdir(exist_ok=True)

    def following(_: Row) -> list[_Task]:
        if others:
            return [_of_converters(program, others, expected, folder)]
        shutil.rmtree(folder)
        return []

    call = functools.partial(run_converter, program, name, expected, folder)
    return _Task(program.case, name, call, following)


def _run_in_processes(
    waiting: collections.deque[_Task], workers: int, timeout: float, stop: threading.Event
) -> Iterator[tuple[_Task, Row]]:
    """Runs tasks until none is waiting; the caller may add some when it gets a row."""
    pool = pebble.ProcessPool(
        workers, max_tasks=1, initializer=_start_worker, context=_fork_server()
    )
    finished: queue.SimpleQueue[concurrent.futures.Future] = queue.SimpleQueue()
    running: dict[concurrent.futures.Future, _Task] = {}
    try:
        while (waiting or running) and not stop.is_set():
            while waiting and len(running) < workers:
                task = waiting.popleft()
                future = pool.schedule(task.call, timeout=timeout)
                running[future] = task
                future.add_done_callback(finished.put)
            try:
                done = finished.get(timeout=0.2)
            except queue.Empty:
                continue
            task = running.pop(done)
            error = done.exception()
            yield task, done.result() if error is None else _failed(task, error, timeout)
    finally:
        pool.stop()
        pool.join()


def _failed(task: _Task, error: BaseException, timeout: float) -> Row:
    """The row of a cell whose process has returned none."""
    if isinstance(error, TimeoutError):
        message = f"no result within {timeout:g} seconds"
    elif isinstance(error, pebble.ProcessExpired):
        code = error.exitcode
        how = f"of {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        message = f"the process died {how}"
    else:
        raise error
    return Row(task.case, task.converter, ok=False, message=message)


def _fork_server() -> multiprocessing.context.BaseContext:
    """Processes are forks of one that has imported TensorFlow, where the platform has them."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Most models are made of layers of Flax.
    context.set_forkserver_preload([__name__, "flax.linen"])
    return context


def _start_worker() -> None:
    """Prepares a process; what libraries print goes to standard error, not into the report."""
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    tf.get_logger().setLevel("ERROR")
