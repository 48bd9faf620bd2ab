"""Opens files of results, and says in plain words why one cannot be used.

A file that is damaged, or no file of results, is left as it is.
"""

import contextlib
import os
import pathlib
import shutil
import sqlite3
import struct
import tempfile
import time
from collections.abc import Iterator
from urllib.parse import quote

from results import rows, schema

_MAGIC = b"SQLite format 3\0"
# How long to wait for other processes that write to the same file, in seconds.
_PATIENCE = 60.0
# What ends the names of the files in which SQLite has what it has not written to the file itself:
# a log of what is new, or a journal of what was there before.
_LOG, _JOURNAL = "-wal", "-journal"

_REASONS = {
    "SQLITE_FULL": "cannot be written, as the disk is full; what had been recorded is kept",
    "SQLITE_READONLY": "cannot be written, as it is read-only",
    "SQLITE_CANTOPEN": "cannot be opened; does its directory exist, and may it be written?",
    "SQLITE_PERM": "cannot be opened for want of permission",
    "SQLITE_BUSY": "is kept locked by another process",
    "SQLITE_LOCKED": "is kept locked by another process",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is damaged, or no SQLite file",
    "SQLITE_IOERR": "cannot be read or written; what had been recorded is kept",
}


class DatabaseError(sqlite3.DatabaseError):
    """A file of results cannot be used, for the reason that the message gives."""


@contextlib.contextmanager
def explained(path: str | pathlib.Path) -> Iterator[None]:
    """A context in which errors of SQLite become `DatabaseError`s that name the file."""
    try:
        yield
    except DatabaseError:
        raise
    except sqlite3.Error as error:
        # The name of the error without what SQLite knows further, such as SQLITE_IOERR_WRITE.
        name = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
        if "decode to UTF-8" in str(error):
            name = "SQLITE_CORRUPT"
        reason = _REASONS.get(name, "cannot be used")
        raise DatabaseError(f"{path} {reason} (SQLite says: {error})") from error
    except UnicodeDecodeError as error:  # SQLite has told of a damaged name.
        raise DatabaseError(f"{path} {_REASONS['SQLITE_CORRUPT']} ({error})") from error
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror}") from error


def check(path: str | pathlib.Path) -> None:
    """Makes sure that a file can be used, if there is one, without changing it.

    Raises:
      DatabaseError: if it is damaged, of another program, or of a later version of this project.
    """
    while not _is_new(path):
        before = _stamp(path)
        try:
            _verify(path)
            return
        except DatabaseError:
            if before == _stamp(path):
                raise  # Else another process has changed the file meanwhile.


def open_for_writing(path: str | pathlib.Path) -> sqlite3.Connection:
    """Opens a file, makes it if there is none, and migrates it if it is of an older version.

    Raises:
      DatabaseError: if it cannot be used; see `check`.
    """
    check(path)
    with explained(path), _closed_on_error(_connect(path, "mode=rwc")) as connection:
        if schema.version(connection) < schema.VERSION:
            schema.bring_up_to_date(connection)
        _write_ahead(connection)
        # A commit is on the disk when it returns.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # Else SQLite would say only later, when there are results, that the file is read-only.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        return connection


def open_for_reading(path: str | pathlib.Path) -> sqlite3.Connection:
    """Opens a file that may be read-only; one of an older version is migrated in memory.

    Raises:
      DatabaseError: if there is no such file, it has no results, or it cannot be used.
    """
    if _is_new(path):
        raise DatabaseError(f"{path} has no results of sweeps")
    check(path)
    with explained(path), _closed_on_error(_connect_for_reading(path)) as connection:
        found = schema.version(connection)
        if not found:
            raise DatabaseError(f"{path} has no results of sweeps")
        if found == schema.VERSION:
            return connection
        copy = sqlite3.connect(":memory:", isolation_level=None)
        connection.backup(copy)
        connection.close()
        schema.bring_up_to_date(copy)
        return copy


def _is_new(path: str | pathlib.Path) -> bool:
    """Whether there is nothing in a file yet; its first bytes tell whose it is, if there is.

    They are read without SQLite, which leaves files beside those that it opens.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise DatabaseError(f"{path} is a directory or a device, and no file")
    try:
        with open(path, "rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror}") from error
    if not header:
        return True
    if not any(header) and _JOURNAL in _leftovers(path):
        return False  # A process was killed before it had written the beginning.
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise DatabaseError(f"{path} is no SQLite file, so no results of sweeps; use another file")
    changes, version, application = (
        struct.unpack_from(">I", header, offset)[0] for offset in (40, 60, 68)
    )
    if not (changes or version or application or _leftovers(path)):
        return True
    if application not in (0, schema.APPLICATION) or (not application and version != 1):
        raise DatabaseError(_foreign(path))
    return False


def _foreign(path: str | pathlib.Path) -> str:
    return f"{path} is a database of something else than results of sweeps; use another file"


def _verify(path: str | pathlib.Path) -> None:
    """Raises an error if a database is damaged, or lacks the tables of a version that is known."""
    with explained(path), contextlib.closing(_connect_to_look(path)) as connection:
        version = schema.version(connection)
        if version > schema.VERSION:
            raise DatabaseError(
                f"{path} has version {version} of the tables, and here only those up to "
                f"{schema.VERSION} are known; use a later version of this project, or another file"
            )
        damage = [text for (text,) in connection.execute("PRAGMA quick_check(1)") if text != "ok"]
        if damage:
            raise DatabaseError(f"{path} is damaged ({damage[0].strip()}); it is left as it is")
        (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if _leftovers(path) and not tables:
            return  # A process was killed while it made the tables.
        of_sweeps = {name for _, name, *_ in connection.execute("PRAGMA table_info(sweeps)")}
        of_results = {name for _, name, *_ in connection.execute("PRAGMA table_info(results)")}
    since_2 = {"ulps"} if version < 2 else set()
    missing = {*rows.VERSIONS, "selection", "turn", "fingerprint"} - of_sweeps
    missing |= set(rows.ROW) - of_results - since_2
    if missing:
        raise DatabaseError(_foreign(path))


def _connect(path: str | pathlib.Path, mode: str) -> sqlite3.Connection:
    uri = f"file://{quote(os.fsencode(os.path.abspath(path)))}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)


def _leftovers(path: str | pathlib.Path) -> list[str]:
    """The ends of names of files beside it that belong to it.

    Processes that write have them, and leave them if they are killed.
    """
    return [end for end in (_LOG, _JOURNAL) if os.path.exists(f"{path}{end}")]


def _stamp(path: str | pathlib.Path) -> list[tuple[str, int, int]]:
    """What is different after another process has written to a file."""
    found = []
    for end in ("", *_leftovers(path)):
        with contextlib.suppress(FileNotFoundError):
            about = os.stat(f"{path}{end}")
            # Those who only look at a log change its time.
            found.append((end, 0 if end == _LOG else about.st_mtime_ns, about.st_size))
    return found


def _connect_to_look(path: str | pathlib.Path) -> sqlite3.Connection:
    """Opens a file so that nothing of it, or beside it, is changed."""
    leftovers = _leftovers(path)
    if not leftovers:
        # It neither waits for other processes nor makes files beside it.
        return _connect(path, "mode=ro&immutable=1")
    if leftovers == [_LOG] and os.path.exists(f"{path}-shm"):
        # Another process may be writing.
        connection = _connect(path, "mode=ro")
        try:
            schema.version(connection)
            return connection
        except sqlite3.OperationalError:
            connection.close()
    return _recovered(path)


def _recovered(path: str | pathlib.Path) -> sqlite3.Connection:
    """A copy in memory of a file that processes have left when they were killed.

    It is as SQLite makes the file itself as soon as it may write.
    """
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory, "copy")
        # First the file: pages that are changed meanwhile are in the journal then.
        for end in ("", *_leftovers(path)):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        memory = sqlite3.connect(":memory:", isolation_level=None)
        with (
            _closed_on_error(memory),
            contextlib.closing(_connect(copy, "mode=rw")) as connection,
        ):
            connection.backup(memory)
        return memory


def _connect_for_reading(path: str | pathlib.Path) -> sqlite3.Connection:
    """Opens a file as writers do, to wait for them, or alone where nothing can be written."""
    connection = _connect(path, "mode=rw")
    try:
        schema.version(connection)
        connection.execute("PRAGMA query_only = ON")
        return connection
    except sqlite3.OperationalError:
        connection.close()
        return _connect_to_look(path)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Lets others read while one writes. SQLite does not wait for others when it is switched."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
