"""Runs all plain cells of a primitive again and again: at once, and whenever a source has changed.

    python -m tools.sweep --watch sort

The process imports JAX and TensorFlow once, and no rules, harnesses and limitations. For each run
it makes forks of itself, which import the sources as they are then and share the cells. Nothing is
recorded.
"""

import argparse
import collections
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# TensorFlow reads it when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# What takes long to import.
import jax
import ml_dtypes  # noqa: F401
import numpy  # noqa: F401
import pebble  # noqa: F401
import tensorflow  # noqa: F401

from results import outcome
from results.outcome import Verdict
from results.rows import Row
from tools.terminal import failed, run, stopped_by_signals

ROOT = pathlib.Path(__file__).parents[1]
_SOURCES = ("lowering", "harnesses", "limitations")
# Programs, and the tables that they read.
_SUFFIXES = (".py", ".json")
# How often to look for changes, in seconds.
_INTERVAL = 0.3
# How long a cell may take, in seconds.
_TIMEOUT = 120.0


def stamps() -> dict[pathlib.Path, tuple[int, int]]:
    """When each source was changed, and its size."""
    found = {}
    for room in _SOURCES:
        for directory, _, names in os.walk(ROOT / room):
            for path in (pathlib.Path(directory, name) for name in names):
                # Editors that save a file may take it away for a moment.
                with contextlib.suppress(FileNotFoundError):
                    if path.suffix in _SUFFIXES:
                        found[path] = path.stat().st_mtime_ns, path.stat().st_size
    return found


class UnknownPrimitiveError(Exception):
    """No harness has the primitive, as the message says."""


def _work(primitive: str, number: int, total: int, answers: Any) -> None:
    """Runs a part of the cells of a primitive, in a fork; sends names of harnesses and results."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    # The process that is watching ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        # The sources as they are now.
        from harnesses import cell, sweep
        from harnesses.engines import worker
        from harnesses.harness import all_harnesses
        from harnesses.selection import Selection, SelectionError
        from harnesses.shards import Shard, take
        from harnesses.times import Times

        worker.start(all_harnesses, None)
        harnesses = all_harnesses()
        selection = Selection(primitives=(primitive,), share="none", per_harness="all")
        try:
            selected = selection.cells(harnesses)
        except SelectionError as error:
            answers.send(UnknownPrimitiveError(str(error)))
            selected = {}
        mine = take(Shard(number, total), selected, harnesses, Times.committed())
        for name, cells in mine.items():
            answers.send(name)
            left = set(cells)
            try:
                for result in cell.run(harnesses[name], cells):
                    answers.send(sweep.row_of(harnesses[name], result))
                    left.remove(result.cell)
            except Exception as error:  # The harness's own.
                cells = [c for c in cells if c in left]
                for row in worker.failed(harnesses[name], cells, worker.describe(error)):
                    answers.send(sweep.row_of(harnesses[name], row))
    except Exception as error:  # In the sources that somebody is writing.
        lines = traceback.format_exception(error, chain=False)
        answers.send(RuntimeError("".join(lines[-3:]).strip()))
    answers.send(None)


class Run:
    """One run of the cells of a primitive, by forks of this process."""

    def __init__(self, primitive: str, workers: int):
        """Starts a run by a number of forks."""
        context = multiprocessing.get_context("fork")
        self._processes = {}
        for number in range(1, workers + 1):
            here, there = context.Pipe(duplex=False)
            process = context.Process(
                target=_work, args=(primitive, number, workers, there), daemon=True
            )
            process.start()
            there.close()
            self._processes[here] = process
        # The harness that each fork is running, and since when.
        self._under_way: dict[Any, tuple[str, float]] = {}

    def results(self) -> Iterator[Row | str | UnknownPrimitiveError | None]:
        """Yields results and errors as they come, and None now and then, until all forks end."""
        while self._processes:
            ready = multiprocessing.connection.wait(list(self._processes), _INTERVAL)
            for answers in ready:
                yield from self._receive(answers)
            for answers, (harness, since) in list(self._under_way.items()):
                if answers in self._processes and time.monotonic() - since > _TIMEOUT:
                    self._end(answers)
                    yield f"timeout: {harness}, and what was to be run after it"
            yield None

    def _receive(self, answers: Any) -> Iterator[Row | str | UnknownPrimitiveError]:
        try:
            answer = answers.recv()
        except EOFError:
            harness, _ = self._under_way.get(answers, ("no harness yet", 0))
            process = self._processes[answers]
            self._end(answers)
            code = process.exitcode
            yield f"crash (exit code {code}): {harness}, and what was to be run after it"
            return
        if answer is None:
            self._end(answers)
        elif isinstance(answer, str):
            self._under_way[answers] = answer, time.monotonic()
        elif isinstance(answer, Row):
            harness, _ = self._under_way[answers]
            self._under_way[answers] = harness, time.monotonic()
            yield answer
        elif isinstance(answer, UnknownPrimitiveError):
            yield answer
        else:
            yield str(answer)

    def _end(self, answers: Any) -> None:
        process = self._processes.pop(answers)
        answers.close()
        process.join(1)
        process.kill()
        process.join()

    def stop(self) -> None:
        """Ends what is left of the forks."""
        for answers in list(self._processes):
            self._processes[answers].kill()
            self._end(answers)


def describe(rows: Sequence[Row], errors: Sequence[str], seconds: float) -> list[str]:
    """The results of a run, as lines to print."""
    counts: Mapping[str, int] = collections.Counter(row.verdict for row in rows)
    lines = [f"error: {error}" for error in dict.fromkeys(errors)]
    for row in rows:
        if not Verdict(row.verdict).is_as_expected:
            what = row.limitation if row.verdict == Verdict.STALE else row.message
            place = f"{row.harness}, {row.mode} on {row.target}"
            lines.append(f"{row.verdict}: {place}: {row.outcome}: {what[:500]}")
    return [*lines, f"{len(rows)} cells in {seconds:.1f} s: {outcome.summary(counts)}"]


def watch(primitive: str, workers: int, stop: threading.Event) -> None:
    """Runs the cells of a primitive now and whenever a source has changed.

    Args:
      primitive: the primitive.
      workers: how many processes share its cells.
      stop: ends the watch when it is set.

    Raises:
      UnknownPrimitiveError: if no harness has the primitive in the first run. Later, sources that
        are being written may lack it.
    """
    is_first = True
    while not stop.is_set():
        before = stamps()
        start = time.perf_counter()
        rows, errors = [], []
        running = Run(primitive, workers)
        is_complete = True
        print(f"running the cells of {primitive} in {workers} processes", flush=True)
        try:
            for answer in running.results():
                if isinstance(answer, UnknownPrimitiveError) and is_first:
                    raise answer
                if isinstance(answer, Row):
                    rows.append(answer)
                elif answer is not None:
                    errors.append(str(answer))
                elif stop.is_set() or stamps() != before:
                    is_complete = False
                    break
        finally:
            running.stop()
        if is_complete:
            lines = describe(rows, errors, time.perf_counter() - start)
            print("\n".join(lines), flush=True)
            while stamps() == before and not stop.wait(_INTERVAL):
                pass
            is_first = False
        if not stop.is_set():
            print("a source has changed", flush=True)
        # Python takes compiled files for current if the source has the same size and was saved in
        # the same second, so there are none of what is being written.
        sys.dont_write_bytecode = True


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.watch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("primitive", metavar="PRIMITIVE")
    args = parser.parse_args(argv)
    jax.config.update("jax_num_cpu_devices", 8)
    with stopped_by_signals() as stop:
        try:
            watch(args.primitive, len(os.sched_getaffinity(0)), stop)
        except UnknownPrimitiveError as error:
            return failed(error)
    return 130


if __name__ == "__main__":
    run(main)
