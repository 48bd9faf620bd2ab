"""What commands have in common: errors, interrupts, progress and a log."""

import contextlib
import io
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn, TextIO

import tqdm

from lowering.commands import interrupts

# After so many seconds, or this part of the whole, the measured pace counts as much as that of
# recorded times.
_TRUST = 30.0
_TRUSTED_PART = 0.1


def failed(error: Exception | str, terminal: TextIO | None = None) -> int:
    """Says what is wrong with what a command was given; returns its exit code."""
    print(f"error: {error}", file=terminal or sys.stderr)
    return 2


def run(main: Callable[[], int]) -> NoReturn:
    """Runs a command line, and ends the process with its exit code.

    That is 130 after an interrupt, as shells have it, and 141 if what reads its output has ended.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Messages may have characters that a terminal has not.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        interrupts.say()
        code = interrupts.EXIT_CODE
    except OSError as error:
        code = 141 if isinstance(error, BrokenPipeError) else failed(error)
        # What could not be written is not to be written again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def say(what: str, terminal: TextIO | None = None) -> None:
    """Says what a command does now, for those who wait; never to standard output."""
    print(f"{what} ...", file=terminal or sys.stderr, flush=True)


def importing(what: str) -> None:
    """Says what a command imports, which takes seconds.

    Until `run`, an interrupt ends the process at once: modules may catch KeyboardInterrupt.
    """
    say(f"importing {what}")
    signal.signal(signal.SIGINT, lambda *_: interrupts.end())


class Progress:
    """A progress bar, which appears when it is known what there is to do.

    It shows how much of the time is over, by what cells should take, not how many of them are done,
    as some take a thousand times as long as others.
    """

    def __init__(
        self,
        terminal: TextIO,
        run: str,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Makes a bar.

        Args:
          terminal: where it appears.
          run: what is running, such as "sweep".
          workers: how many cells run side by side.
          clock: the time, in seconds.
        """
        self.total = self.done = 0
        self._run = run
        self._terminal = terminal
        self._workers = workers
        self._clock = clock
        self._bar: tqdm.tqdm | None = None

    def start(self, total: int, done: int, seconds: float | None = None) -> None:
        """Shows the bar.

        Args:
          total: the number of cells.
          done: how many of them are done.
          seconds: how long the others should take one after the other; if None, nothing is known.
        """
        if done:
            print(f"continuing an interrupted {self._run}: {done} of {total} cells are done")
        self.total, self.done = total, done
        self._seconds = float(total - done) if seconds is None else seconds
        self._past = 0.0
        part = _TRUSTED_PART * self._seconds / self._workers
        self._trust = 0.0 if seconds is None else min(_TRUST, part)
        self._started = self._clock()
        interval = 0.5 if self._terminal.isatty() else 30
        self._bar = tqdm.tqdm(
            total=self._seconds,
            mininterval=interval,
            file=self._terminal,
            bar_format="{percentage:3.0f}%|{bar}| {desc}, {elapsed} so far",
            desc=self._state(),
        )

    def add(self, count: int, seconds: float | None = None) -> None:
        """Counts further cells as done, and the seconds that they should have taken."""
        self.done += count
        seconds = count if seconds is None else seconds
        self._past += seconds
        if self._bar is not None:
            self._bar.set_description_str(self._state(), refresh=False)
            self._bar.update(min(seconds, self._seconds - self._bar.n))

    def left(self) -> float | None:
        """An estimate of the seconds that are left; None if nothing is known yet.

        At first the recorded times and the number of workers say it. The longer it has been
        running, the more does its own pace, which is another one on another machine.
        """
        left = max(self._seconds - self._past, 0.0)
        if not self._past:
            return left / self._workers if self._trust else None
        elapsed = self._clock() - self._started
        trust = self._trust / (self._trust + elapsed) if self._trust else 0.0
        return left * (trust / self._workers + (1 - trust) * elapsed / self._past)

    def _state(self) -> str:
        state, left = f"{self.done} of {self.total} cells", self.left()
        if left is None:
            return state
        time = f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
        return f"{state}, about {time} {'left' if self._past else 'by recorded times'}"

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


def log_of(path: pathlib.Path) -> pathlib.Path:
    """The log beside a file: "sweep.sqlite.log", as there may be a "sweep.log" of somebody else."""
    return path.with_name(f"{path.name}.log")


@contextlib.contextmanager
def standard_error_to(path: pathlib.Path, keep: bool = False) -> Iterator[TextIO]:
    """Redirects the standard error of this process and its workers to a file.

    Yields a stream to the former standard error.

    Args:
      path: the file.
      keep: whether to add to what is in the file.
    """
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "w") as terminal:
        with open(path, "ab" if keep else "wb") as log:
            os.dup2(log.fileno(), 2)
        try:
            yield terminal
        finally:
            with contextlib.suppress(OSError):  # The disk of the log may be full.
                sys.stderr.flush()
            os.dup2(terminal.fileno(), 2)
