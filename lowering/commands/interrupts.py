"""Ctrl-C, which may reach Python in a callback of a library that ignores exceptions.

So an interrupt is remembered, and raised once more where a command can end.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def remembered() -> Iterator[Callable[[], None]]:
    """A context whose function raises KeyboardInterrupt, if there was an interrupt in it.

    Outside of the main thread, where Python handles no signals, the function does nothing.
    """
    found = threading.Event()

    def check() -> None:
        if found.is_set():
            raise KeyboardInterrupt

    def interrupt(*_: Any) -> None:
        found.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield check
        return
    handler, hook = signal.signal(signal.SIGINT, interrupt), sys.unraisablehook

    def report(unraisable: Any) -> None:
        """Says nothing of an interrupt, which is raised once more."""
        if unraisable.exc_type is not KeyboardInterrupt:
            hook(unraisable)

    sys.unraisablehook = report
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook
