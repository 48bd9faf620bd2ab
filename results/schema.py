"""The tables of a file of results, and how older files are brought up to date.

A file has the version of its tables in `PRAGMA user_version`. What changes a table takes the next
version, and a migration from the one before; g3doc/results.md explains all columns.
"""

import sqlite3

VERSION = 3
# In `PRAGMA application_id`, since version 2: the letters "lwrg".
APPLICATION = 0x6C777267

_VIEW = """
CREATE VIEW cells AS
  SELECT jax, jaxlib, tensorflow, numpy, python, results.*
  FROM results JOIN sweeps ON sweeps.id = results.sweep
"""

# Numbers of sweeps are never used again: a process whose sweep another one has replaced must not
# write into that one.
_SWEEPS = """
CREATE TABLE sweeps (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  jax TEXT, jaxlib TEXT, tensorflow TEXT, numpy TEXT, python TEXT,
  selection TEXT NOT NULL,
  turn INTEGER NOT NULL,
  fingerprint TEXT NOT NULL,
  started TEXT NOT NULL,
  finished TEXT,
  shard TEXT NOT NULL DEFAULT '',
  cells INTEGER
)
"""

# Versions are JSON: benches compare with packages that sweeps have nothing to do with.
_BENCHES = (
    """
CREATE TABLE benches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  command TEXT NOT NULL,
  machine TEXT NOT NULL,
  versions TEXT NOT NULL,
  started TEXT NOT NULL
)
""",
    """
CREATE TABLE figures (
  bench INTEGER NOT NULL REFERENCES benches ON DELETE CASCADE,
  program TEXT NOT NULL,
  figure TEXT NOT NULL,
  value REAL NOT NULL,
  low REAL NOT NULL,
  high REAL NOT NULL,
  unit TEXT NOT NULL,
  PRIMARY KEY (bench, program, figure)
) WITHOUT ROWID
""",
)

_TABLES = (
    _SWEEPS,
    """
CREATE TABLE results (
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
  ulps REAL,
  PRIMARY KEY (sweep, harness, mode, target, device, variant)
) WITHOUT ROWID
""",
    _VIEW,
    *_BENCHES,
)

# By the version that they start from.
_MIGRATIONS = {
    1: (
        "DROP VIEW cells",
        _SWEEPS.replace("CREATE TABLE sweeps", "CREATE TABLE sweeps_2"),
        """
INSERT INTO sweeps_2
  SELECT id, jax, jaxlib, tensorflow, numpy, python, selection, turn, fingerprint, started,
    finished, '', NULL
  FROM sweeps
""",
        "DROP TABLE sweeps",
        "ALTER TABLE sweeps_2 RENAME TO sweeps",
        "ALTER TABLE results ADD COLUMN ulps REAL",
        _VIEW,
    ),
    2: _BENCHES,
}


def version(connection: sqlite3.Connection) -> int:
    """The version of the tables; 0 if there are none."""
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    return found if tables else 0


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Makes the tables, or migrates those of an older version, in one transaction.

    Several processes may do so at the same time; the first one does it for all.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = version(connection)
        if found == 0:
            _run(connection, _TABLES)
        else:
            for older in range(found, VERSION):
                _run(connection, _MIGRATIONS[older])
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _run(connection: sqlite3.Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)
