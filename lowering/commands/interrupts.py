"""Ctrl-C, which may reach Python in a library that ignores exceptions or raises others instead.

So an interrupt is deferred, and raised once more where a command can end. Native modules may even
abort the process if they are interrupted while they are imported, so there nothing is raised.
"""

import contextlib
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

# The exit code, in shells, of a program that this signal has ended.
EXIT_CODE = 130

# The file of Python's code that imports modules.
_IMPORTS = "<frozen importlib._bootstrap>"


def say() -> None:
    """Says that the command was interrupted."""
    print("interrupted", file=sys.stderr, flush=True)


def end() -> NoReturn:
    """Says that the command was interrupted, and ends the process without cleaning up."""
    say()
    os._exit(EXIT_CODE)


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], None]]:
    """A context whose function raises KeyboardInterrupt, if there was an interrupt in it.

    Any exception that follows an interrupt becomes KeyboardInterrupt, too. While modules are
    imported before the first call of the function, when there is nothing to clean up, an interrupt
    ends the process at once.

    Outside of the main thread, where Python handles no signals, the function does nothing.
    """
    found, begun = threading.Event(), threading.Event()

    def check() -> None:
        begun.set()
        if found.is_set():
            raise KeyboardInterrupt from None

    def interrupt(_: int, frame: types.FrameType | None) -> None:
        found.set()
        if not _is_importing(frame):
            raise KeyboardInterrupt
        if not begun.is_set():
            end()

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    handler = signal.signal(signal.SIGINT, interrupt)
    hooks = sys.unraisablehook, sys.excepthook

    # Native code reports what it ignores. It says nothing of an interrupt, which is raised again,
    # nor of what follows from it, such as a SystemError of a function that an interrupt has left.
    def report_unraisable(unraisable: Any) -> None:
        if unraisable.exc_type is not KeyboardInterrupt and not found.is_set():
            hooks[0](unraisable)

    def report(kind: type[BaseException], *error: Any) -> None:
        if kind is not KeyboardInterrupt and not found.is_set():
            hooks[1](kind, *error)

    sys.unraisablehook, sys.excepthook = report_unraisable, report
    try:
        yield check
    except BaseException:  # Of the user's function, too, which may call sys.exit.
        check()
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook, sys.excepthook = hooks


def _is_importing(frame: types.FrameType | None) -> bool:
    """Whether a frame, or one that called it, imports a module."""
    while frame is not None and frame.f_code.co_filename != _IMPORTS:
        frame = frame.f_back
    return frame is not None
