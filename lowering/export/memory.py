"""Memory that an export is done with.

glibc keeps what is freed, in pieces as large as weights too, for the thread that has had it; the
next stage of an export, which may run in other threads, takes new memory then.
"""

import contextlib
import ctypes


def give_back() -> None:
    """Gives freed memory back to the system, where the C library can."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
