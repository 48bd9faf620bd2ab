"""The results of sweeps, in an SQLite file.

A file has one sweep for each combination of versions and selection; a new sweep replaces the old
one. Results are committed as they arrive, so that an interrupted sweep can be continued.
"""

import dataclasses
import datetime
import json
import pathlib
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sweeps (
  id INTEGER PRIMARY KEY,
  jax TEXT, jaxlib TEXT, tensorflow TEXT, numpy TEXT, python TEXT,
  selection TEXT NOT NULL,
  turn INTEGER NOT NULL,
  fingerprint TEXT NOT NULL,
  started TEXT NOT NULL,
  finished TEXT
);
CREATE TABLE IF NOT EXISTS results (
  sweep INTEGER NOT NULL REFERENCES sweeps ON DELETE CASCADE,
  harness TEXT NOT NULL,
  primitive TEXT NOT NULL,
  dtype TEXT NOT NULL,
  mode TEXT NOT NULL,
  target TEXT NOT NULL,
  device TEXT NOT NULL,
  variant TEXT NOT NULL,
  outcome TEXT NOT NULL,
  verdict TEXT NOT NULL,
  error REAL NOT NULL,
  message TEXT NOT NULL,
  limitation TEXT NOT NULL,
  seconds REAL NOT NULL,
  PRIMARY KEY (sweep, harness, mode, target, device, variant)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS cells AS
  SELECT jax, jaxlib, tensorflow, numpy, python, results.*
  FROM results JOIN sweeps ON sweeps.id = results.sweep;
"""


@dataclasses.dataclass(frozen=True)
class Versions:
    """The versions of the packages and of Python that a sweep ran with."""

    jax: str
    jaxlib: str
    tensorflow: str
    numpy: str
    python: str


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of a cell, as it is stored; the attributes are those of `cell.Result`."""

    harness: str
    primitive: str
    dtype: str
    mode: str
    target: str
    device: str
    variant: str
    outcome: str
    verdict: str
    error: float
    message: str
    limitation: str
    seconds: float


# The version of the schema; a file of another version is refused.
_VERSION = 1

_COLUMNS = tuple(field.name for field in dataclasses.fields(Row))
_VERSIONS = tuple(field.name for field in dataclasses.fields(Versions))


class Database:
    """An SQLite file of sweeps."""

    def __init__(self, path: str | pathlib.Path):
        """Opens the file, and makes it if there is none.

        Raises:
          sqlite3.DatabaseError: if the file is no database, or one of another version.
        """
        self._connection = sqlite3.connect(path)
        self._check_version(path)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_SCHEMA)

    def _check_version(self, path: str | pathlib.Path) -> None:
        """Raises an error for a file of another version; marks a new file."""
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self._connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if tables and version != _VERSION:
            self.close()
            raise sqlite3.DatabaseError(
                f"{path} has version {version} of the tables, not {_VERSION}; use another file"
            )
        if not tables:
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def begin(
        self, versions: Versions, selection: Any, fingerprint: str, fresh: bool
    ) -> tuple[int, int]:
        """Starts a sweep, or continues the one that was interrupted.

        Args:
          versions: the versions that it runs with.
          selection: the cells that it runs, as JSON data.
          fingerprint: a hash of the sources; a sweep of other sources is not continued.
          fresh: whether to start anew even if a sweep could be continued.

        Returns:
          The id of the sweep, and its turn: how many sweeps have been finished before it.
        """
        key = (*dataclasses.astuple(versions), json.dumps(selection, sort_keys=True))
        same = " AND ".join(f"{column} = ?" for column in (*_VERSIONS, "selection"))
        with self._connection:
            if not fresh:
                found = self._connection.execute(
                    f"SELECT id, turn FROM sweeps "
                    f"WHERE {same} AND fingerprint = ? AND finished IS NULL",
                    (*key, fingerprint),
                ).fetchone()
                if found is not None:
                    return found
            (turn,) = self._connection.execute(
                f"SELECT COALESCE(MAX(turn + (finished IS NOT NULL)), 0) FROM sweeps WHERE {same}",
                key,
            ).fetchone()
            self._connection.execute(f"DELETE FROM sweeps WHERE {same}", key)
            columns = (*_VERSIONS, "selection", "turn", "fingerprint", "started")
            cursor = self._connection.execute(
                f"INSERT INTO sweeps ({', '.join(columns)}) VALUES ({_marks(columns)})",
                (*key, turn, fingerprint, _now()),
            )
            assert cursor.lastrowid is not None  # A row has been inserted.
            return cursor.lastrowid, turn

    def record(self, sweep: int, rows: Iterable[Row]) -> None:
        """Adds results to a sweep and commits them."""
        with self._connection:
            self._connection.executemany(
                f"INSERT OR REPLACE INTO results (sweep, {', '.join(_COLUMNS)}) "
                f"VALUES (?, {_marks(_COLUMNS)})",
                [(sweep, *dataclasses.astuple(row)) for row in rows],
            )

    def finish(self, sweep: int) -> None:
        """Marks a sweep as complete."""
        with self._connection:
            self._connection.execute("UPDATE sweeps SET finished = ? WHERE id = ?", (_now(), sweep))

    def rows(self, sweep: int) -> list[Row]:
        """The results of a sweep, ordered by harness."""
        cursor = self._connection.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM results WHERE sweep = ? "
            "ORDER BY harness, variant, target, mode, device",
            (sweep,),
        )
        return [Row(*values) for values in cursor]

    def finished(self, selection: Any) -> list[tuple[int, Versions]]:
        """The complete sweeps of a selection, the oldest first."""
        cursor = self._connection.execute(
            f"SELECT id, {', '.join(_VERSIONS)} FROM sweeps "
            "WHERE selection = ? AND finished IS NOT NULL ORDER BY finished",
            (json.dumps(selection, sort_keys=True),),
        )
        return [(sweep, Versions(*versions)) for sweep, *versions in cursor]


def _marks(columns: Sequence[str]) -> str:
    """A placeholder of SQL for each column."""
    return ", ".join("?" for _ in columns)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
