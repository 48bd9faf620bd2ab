"""The results of sweeps, in an SQLite file.

A file has one sweep for each combination of versions, selection and shard; a new sweep replaces the
old one when it is complete. Results are committed as they arrive, so that an interrupted sweep can
be continued.
"""

import contextlib
import dataclasses
import datetime
import json
import pathlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from results import rows as results
from results.files import DatabaseError, explained, open_for_reading, open_for_writing
from results.rows import Row, Sweep, Versions

_SWEEP = tuple(column for column in results.columns(Sweep) if column != "versions")


class Database:
    """An SQLite file of sweeps.

    All methods raise a `DatabaseError` if the file cannot be read or written, as on a full disk.
    What has been recorded before is kept.
    """

    def __init__(self, path: str | pathlib.Path, writable: bool = True):
        """Opens the file.

        Args:
          path: the file.
          writable: whether to write to it; it is made if there is none.

        Raises:
          DatabaseError: if the file is damaged, or no file of results of sweeps; or if it is only
            to be read and there is none.
        """
        self._path = path
        self._connection = (open_for_writing if writable else open_for_reading)(path)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def begin(
        self,
        versions: Versions,
        selection: Any,
        fingerprint: str,
        fresh: bool,
        shard: str = "",
    ) -> tuple[int, int]:
        """Starts a sweep, or continues the one that was interrupted.

        One that was interrupted and cannot be continued is removed. One that is complete stays
        until the new one is.

        Args:
          versions: the versions that it runs with.
          selection: the cells that it runs, as JSON data.
          fingerprint: a hash of the sources; a sweep of other sources is not continued.
          fresh: whether to start anew even if a sweep could be continued.
          shard: which part of the selection it runs, such as "1/3"; all of it by default.

        Returns:
          The id of the sweep, and its turn: how many sweeps have been finished before it.
        """
        key = (*dataclasses.astuple(versions), as_text(selection), shard)
        same = " AND ".join(f"{column} = ?" for column in (*results.VERSIONS, "selection", "shard"))
        with self._transaction() as connection:
            if not fresh:
                found = connection.execute(
                    f"SELECT id, turn FROM sweeps "
                    f"WHERE {same} AND fingerprint = ? AND finished IS NULL",
                    (*key, fingerprint),
                ).fetchone()
                if found is not None:
                    return found
            (turn,) = connection.execute(
                f"SELECT COALESCE(MAX(turn + (finished IS NOT NULL)), 0) FROM sweeps WHERE {same}",
                key,
            ).fetchone()
            connection.execute(f"DELETE FROM sweeps WHERE {same} AND finished IS NULL", key)
            columns = (*results.VERSIONS, "selection", "shard", "turn", "fingerprint", "started")
            values = (*key, turn, fingerprint, now())
            return self._insert("sweeps", columns, values), turn

    def count(self, sweep: int, cells: int) -> None:
        """Notes how many cells the selection of a sweep has, in all shards."""
        with self._transaction() as connection:
            connection.execute("UPDATE sweeps SET cells = ? WHERE id = ?", (cells, sweep))

    def record(self, sweep: int, rows: Iterable[Row]) -> None:
        """Adds results to a sweep and commits them."""
        with self._transaction() as connection:
            if not connection.execute("SELECT 1 FROM sweeps WHERE id = ?", (sweep,)).fetchone():
                raise DatabaseError(
                    f"{self._path} no longer has this sweep: another one of the same selection has "
                    "taken its place meanwhile"
                )
            connection.executemany(
                f"INSERT OR REPLACE INTO results (sweep, {', '.join(results.ROW)}) "
                f"VALUES (?, {_marks(results.ROW)})",
                [(sweep, *dataclasses.astuple(row)) for row in rows],
            )

    def finish(self, sweep: int) -> None:
        """Marks a sweep as complete, and removes the one that it replaces."""
        same = " AND ".join(
            f"sweeps.{c} IS other.{c}" for c in (*results.VERSIONS, "selection", "shard")
        )
        with self._transaction() as connection:
            connection.execute("UPDATE sweeps SET finished = ? WHERE id = ?", (now(), sweep))
            connection.execute(
                "DELETE FROM sweeps WHERE finished IS NOT NULL AND id < ? AND "
                f"EXISTS (SELECT 1 FROM sweeps AS other WHERE other.id = ? AND {same})",
                (sweep, sweep),
            )

    def rows(self, sweep: int) -> list[Row]:
        """The results of a sweep, ordered by harness."""
        with explained(self._path):
            cursor = self._connection.execute(
                f"SELECT {', '.join(results.ROW)} FROM results WHERE sweep = ? "
                "ORDER BY harness, variant, target, mode, device",
                (sweep,),
            )
            return [Row(*values) for values in cursor]

    def sweeps(self) -> list[Sweep]:
        """All sweeps, the oldest first."""
        with explained(self._path):
            cursor = self._connection.execute(
                f"SELECT {', '.join((*_SWEEP, *results.VERSIONS))} FROM sweeps ORDER BY started, id"
            )
            found = []
            for values in cursor:
                fields = dict(zip(_SWEEP, values, strict=False))
                found.append(Sweep(versions=Versions(*values[len(_SWEEP) :]), **fields))
            return found

    def finished(self, selection: Any) -> list[tuple[int, Versions]]:
        """The complete sweeps of all shards of a selection, the oldest first."""
        of_selection = [
            sweep
            for sweep in self.sweeps()
            if sweep.selection == as_text(selection) and not sweep.shard and sweep.finished
        ]
        of_selection.sort(key=lambda sweep: sweep.finished or "")
        return [(sweep.id, sweep.versions) for sweep in of_selection]

    def add(self, sweep: Sweep, rows: Iterable[Row]) -> None:
        """Adds a sweep with all its results, under a new number."""
        columns = (*_SWEEP[1:], *results.VERSIONS)
        fields = {**dataclasses.asdict(sweep), **dataclasses.asdict(sweep.versions)}
        with self._transaction() as connection:
            number = self._insert("sweeps", columns, [fields[column] for column in columns])
            connection.executemany(
                f"INSERT INTO results (sweep, {', '.join(results.ROW)}) "
                f"VALUES (?, {_marks(results.ROW)})",
                [(number, *dataclasses.astuple(row)) for row in rows],
            )

    def _insert(self, table: str, columns: Sequence[str], values: Sequence[Any]) -> int:
        """Inserts a row; returns its number."""
        cursor = self._connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_marks(columns)})", values
        )
        assert cursor.lastrowid is not None  # A row has been inserted.
        return cursor.lastrowid

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other process writes in; it is undone if an error leaves it."""
        with explained(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself ends a transaction that a full disk has interrupted.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def as_text(selection: Any) -> str:
    """A selection as the text that it is stored as."""
    return json.dumps(selection, sort_keys=True)


def now() -> str:
    """The time, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _marks(columns: Sequence[str]) -> str:
    """A placeholder of SQL for each column."""
    return ", ".join("?" for _ in columns)
