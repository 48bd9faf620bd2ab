"""What commands have in common: errors, interrupts, progress and a log."""

import contextlib
import io
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn, TextIO

import tqdm


def failed(error: Exception | str, terminal: TextIO | None = None) -> int:
    """Says what is wrong with what a command was given; returns its exit code."""
    print(f"error: {error}", file=terminal or sys.stderr)
    return 2


def run(main: Callable[[], int]) -> NoReturn:
    """Runs a command line, and ends the process with its exit code.

    That is 130 after an interrupt, as shells have it, and 141 if what reads its output has ended.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Messages may have characters that a terminal has not.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    except OSError as error:
        code = 141 if isinstance(error, BrokenPipeError) else failed(error)
        # What could not be written is not to be written again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


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
            with contextlib.suppress(OSError):  # The disk of the log may be full.
                sys.stderr.flush()
            os.dup2(terminal.fileno(), 2)
