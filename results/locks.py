"""Locks that keep two processes from the same work. A lock ends with the process that holds it."""

import contextlib
import hashlib
import os
import pathlib
import sqlite3
from collections.abc import Iterator

from results.files import DatabaseError, explained


@contextlib.contextmanager
def held(path: str | pathlib.Path, work: str) -> Iterator[None]:
    """A context in which no other process does the same work on a file.

    The lock is one of SQLite, on a file beside it, as it is on every platform and goes with its
    process, even a killed one.

    Args:
      path: the file.
      work: any text that says what is done.

    Raises:
      DatabaseError: if another process does that, or if nothing can be written beside the file.
    """
    name = f"{path}-lock-{hashlib.sha256(work.encode()).hexdigest()[:8]}"
    with explained(path):
        connection = _locked(name)
    if connection is None:
        raise DatabaseError(
            f"another process is sweeping the same cells into {path}; wait for its end, or use "
            "another file"
        )
    with contextlib.closing(connection):
        try:
            yield
        finally:
            # Where open files cannot be removed it stays, which does no harm.
            with contextlib.suppress(OSError):
                os.unlink(name)


def _locked(name: str) -> sqlite3.Connection | None:
    """A connection that locks the file of a name; None if another one does."""
    while True:
        connection = sqlite3.connect(name, timeout=0, isolation_level=None)
        try:
            before = _number(name)
            connection.execute("BEGIN EXCLUSIVE")
            # The one that had the lock before may have removed the file meanwhile.
            if before is not None and before == _number(name):
                return connection
        except sqlite3.OperationalError as error:
            connection.close()
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                return None
            raise
        connection.close()


def _number(name: str) -> int | None:
    """The number that the file system has for a file."""
    with contextlib.suppress(FileNotFoundError):
        return os.stat(name).st_ino
    return None
