"""Memory that an export is done with.

glibc keeps what is freed, in pieces as large as weights too, for the thread that has had it; the
next stage of an export, which may run in other threads, takes new memory then.
"""

import contextlib
import ctypes


def give_back() -> None:
    """Gives freed memory back to the system, where the C library can."""
    # Windows has no library of the process itself, and other C libraries have no such function.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
