"""What commands that run for long have in common: progress, interrupts and a log."""

import contextlib
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

import tqdm


class Progress:
    """A progress bar, which appears when the number of cells is known."""

    def __init__(self, terminal: TextIO, run: str) -> None:
        """Makes a bar on a terminal; `run` is what is running, such as "sweep"."""
        self.total = self.done = 0
        self._run = run
        self._terminal = terminal
        self._bar: tqdm.tqdm | None = None

    def start(self, total: int, done: int) -> None:
        """Shows the bar, for a number of cells of which some are done."""
        if done:
            print(f"continuing an interrupted {self._run}: {done} of {total} cells are done")
        self.total, self.done = total, done
        interval = 0.5 if self._terminal.isatty() else 30
        self._bar = tqdm.tqdm(
            total=total, initial=done, unit="cell", mininterval=interval, file=self._terminal
        )

    def add(self, count: int) -> None:
        """Counts further cells as done."""
        self.done += count
        if self._bar is not None:
            self._bar.update(count)

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set, instead of ending the process."""
    stop = threading.Event()
    usual = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def standard_error_to(path: pathlib.Path) -> Iterator[TextIO]:
    """Redirects the standard error of this process and its workers to a file.

    Yields a stream to the former standard error.
    """
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "w") as terminal:
        with open(path, "wb") as log:
            os.dup2(log.fileno(), 2)
        try:
            yield terminal
        finally:
            sys.stderr.flush()
            os.dup2(terminal.fileno(), 2)
