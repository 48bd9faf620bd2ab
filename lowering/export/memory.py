"""Gives the memory that an export has freed back to the system.

glibc keeps freed memory, even pieces as large as weights, for the thread that has used it. The next
stage of an export may run in other threads, and would take new memory.
"""

import contextlib
import ctypes
import gc
import os
from collections.abc import Iterator

# Models of so many bytes are run in memory that is given back piece by piece.
LARGE_BYTES = 100_000_000

# The numbers of glibc's parameters, and the bytes from which on a piece is mapped by itself, in a
# large model and afterwards: the least of a weight, and the most that glibc chooses itself.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_PIECE, _LARGEST_PIECE = 1 << 20, 1 << 25


def collect(size: int) -> None:
    """Frees what only cycles of objects hold, before the next stage needs as much again.

    Python looks for cycles by the number of objects, and weights are few objects.

    Args:
      size: the bytes of the weights; for few of them the search is not worth its time.
    """
    if size >= LARGE_BYTES:
        gc.collect()


def give_back() -> None:
    """Gives freed memory back to the system, where the C library can."""
    # Windows has no library of the process itself, and other C libraries have no such function.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.contextmanager
def returned(size: int) -> Iterator[None]:
    """A context in which large pieces of memory go back to the system when they are freed.

    glibc does so until a process has freed a large piece, and keeps pieces of that size from then
    on. A runtime that replaces one weight after the other would take the memory of both copies.

    Args:
      size: the bytes of what is worked on; for few of them nothing changes.
    """
    if size < LARGE_BYTES:
        yield
        return
    _set(_MMAP_THRESHOLD, _PIECE)
    try:
        yield
    finally:
        # What glibc has chosen is not known; this is what it comes to in a process that has freed
        # large pieces.
        _set(_MMAP_THRESHOLD, _LARGEST_PIECE)
        _set(_TRIM_THRESHOLD, 2 * _LARGEST_PIECE)


def _set(parameter: int, number: int) -> None:
    # Only glibc has parameters of these numbers.
    with contextlib.suppress(AttributeError, OSError, TypeError, ValueError):
        if os.confstr("CS_GNU_LIBC_VERSION"):
            ctypes.CDLL(None).mallopt(parameter, number)
