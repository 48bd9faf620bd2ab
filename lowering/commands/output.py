"""Writes the stages of exports to the standard error, and keeps the logs of libraries from it.

Native code of TensorFlow and LiteRT logs to the file of the standard error, past Python.
"""

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

# How many stages an export has: lowering, converting, running.
_STAGES = 3


def open_streams() -> None:
    """Opens the standard streams that are closed, or else the first files would have their numbers.

    What native code logs would be written into these files.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It gets the least number that is free.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


@contextlib.contextmanager
def without_logs() -> Iterator[None]:
    """A context in which only Python's own text reaches the standard error, without warnings."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Filters, as imports set the levels anew. absl makes its logger when it is imported.
    with contextlib.suppress(ImportError):
        import absl.logging  # noqa: F401
    loggers = [logging.getLogger(name) for name in ("absl", "jax", "tensorflow")]
    for logger in loggers:
        logger.addFilter(_is_error)
    kept, python = os.dup(2), sys.stderr
    try:
        if _is_native(python):
            sys.stderr = open(kept, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        os.close(nothing)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 2)
        if sys.stderr is not python:
            sys.stderr.flush()
            sys.stderr = python
        os.close(kept)
        for logger in loggers:
            logger.removeFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR


def _is_native(stream: Any) -> bool:
    """Whether a stream writes to the file of the standard error."""
    try:
        return stream.fileno() == 2
    except (AttributeError, OSError, io.UnsupportedOperation):
        return False


@contextlib.contextmanager
def progress(quiet: bool, check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """A context in which exports say what they do: by a bar of rich in a terminal, or in lines.

    `check` is called before each stage, and may raise an exception.
    """

    def checked(record: logging.LogRecord) -> bool:
        check()
        return True

    log = logging.getLogger("lowering.export")
    bar = None if quiet else _bar()
    handler: logging.Handler = logging.StreamHandler() if bar is None else _BarHandler(bar)
    level = log.level
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    log.addFilter(checked)
    try:
        with contextlib.nullcontext() if bar is None else bar:
            yield
    finally:
        log.removeFilter(checked)
        log.removeHandler(handler)
        log.propagate = True
        log.setLevel(level)


def _bar() -> Any:
    """A bar of rich, which the extra `cli` installs; None without it or without a terminal."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich import console, progress
    except ImportError:
        return None
    return progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=20),
        progress.TimeElapsedColumn(),
        console=console.Console(file=sys.stderr),
        transient=True,
    )


class _BarHandler(logging.Handler):
    """Shows stages, which are messages without numbers, in a bar, and warnings above it."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self._bar = bar
        self._task: Any = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._bar.console.print(record.getMessage(), markup=False, highlight=False)
        elif not record.args:
            if self._task is None or record.getMessage().startswith("lowering"):
                if self._task is not None:
                    self._bar.remove_task(self._task)
                self._task = self._bar.add_task(record.getMessage(), total=_STAGES)
            else:
                self._bar.update(self._task, description=record.getMessage(), advance=1)
