"""Files of results are migrated, shared by processes, and survive what may happen to files."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from harnesses.cell import Verdict
from harnesses.database import Database, DatabaseError, Versions
from results import rows, schema
from tests.harnesses.rows import row
from tests.helpers import ROOT

VERSIONS = Versions("1", "1", "2", "3", "3.11")
SELECTION = {"primitives": ["*"]}

# The tables as they were in version 1.
VERSION_1 = """
PRAGMA user_version = 1;
CREATE TABLE sweeps (
  id INTEGER PRIMARY KEY,
  jax TEXT, jaxlib TEXT, tensorflow TEXT, numpy TEXT, python TEXT,
  selection TEXT NOT NULL, turn INTEGER NOT NULL, fingerprint TEXT NOT NULL,
  started TEXT NOT NULL, finished TEXT
);
CREATE TABLE results (
  sweep INTEGER NOT NULL REFERENCES sweeps ON DELETE CASCADE,
  harness TEXT NOT NULL, primitive TEXT NOT NULL, dtype TEXT NOT NULL, mode TEXT NOT NULL,
  target TEXT NOT NULL, device TEXT NOT NULL, variant TEXT NOT NULL, outcome TEXT NOT NULL,
  verdict TEXT NOT NULL, error REAL NOT NULL, message TEXT NOT NULL, limitation TEXT NOT NULL,
  seconds REAL NOT NULL,
  PRIMARY KEY (sweep, harness, mode, target, device, variant)
) WITHOUT ROWID;
CREATE VIEW cells AS
  SELECT jax, jaxlib, tensorflow, numpy, python, results.*
  FROM results JOIN sweeps ON sweeps.id = results.sweep;
INSERT INTO sweeps VALUES
  (7, '1', '1', '2', '3', '3.11', '{"primitives": ["*"]}', 2, 'sources', 'then', 'later');
INSERT INTO results VALUES
  (7, 'sin_1', 'sin', 'int8', 'eager', 'tf', 'cpu', 'plain', 'equal', 'equal', 0.5, 'm', '', 0.1);
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sweep.sqlite"


def make(path: pathlib.Path, script: str) -> bytes:
    """Makes an SQLite file; returns what is in it."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path.read_bytes()


def record(path: pathlib.Path, names: list[str], finish: bool = False, **begin) -> None:
    with contextlib.closing(Database(path)) as database:
        sweep, _ = database.begin(VERSIONS, SELECTION, "sources", fresh=False, **begin)
        for name in names:
            database.record(sweep, [row(name, Verdict.EQUAL)])
        if finish:
            database.finish(sweep)


def recorded(path: pathlib.Path) -> list[str]:
    """The names of harnesses that are recorded."""
    with contextlib.closing(Database(path, writable=False)) as database:
        return [r.harness for sweep in database.sweeps() for r in database.rows(sweep.id)]


def killed_while(path: pathlib.Path, statements: list[str]) -> None:
    """Leaves a file as a process does that is killed in a transaction with some statements.

    So much is written in it that a part goes to the file before the end, and to its journal what
    was there before.
    """
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    many = "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 99999)"
    writer.execute(f"CREATE TABLE generated AS {many} SELECT value FROM n")
    for statement in statements:
        writer.execute(statement)
    before = path.with_name("before")
    for end in ("", "-journal"):
        shutil.copy(f"{path}{end}", f"{before}{end}")
    writer.close()
    for end in ("", "-journal"):
        os.replace(f"{before}{end}", f"{path}{end}")


def columns(path: pathlib.Path) -> dict[str, list[tuple]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(f"PRAGMA table_info({table})").fetchall()
            for table in ("sweeps", "results", "cells")
        }


# Migrations.


def test_a_file_of_version_1_is_migrated_by_writers(path, tmp_path):
    make(path, VERSION_1)
    with contextlib.closing(Database(path)) as database:
        (sweep,) = database.sweeps()
        (result,) = database.rows(sweep.id)
    assert (sweep.id, sweep.turn, sweep.shard, sweep.cells) == (7, 2, "", None)
    assert (result.harness, result.error, result.ulps) == ("sin_1", 0.5, None)
    Database(tmp_path / "new.sqlite").close()
    assert columns(path) == columns(tmp_path / "new.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT harness, jax FROM cells").fetchall() == [("sin_1", "1")]
        assert not connection.execute("PRAGMA foreign_key_check").fetchall()
        assert connection.execute("PRAGMA foreign_key_list(results)").fetchone()[2] == "sweeps"


def test_a_file_of_version_1_is_left_as_it_is_by_readers(path):
    before = make(path, VERSION_1)
    assert recorded(path) == ["sin_1"]
    assert path.read_bytes() == before


def test_a_migration_that_fails_changes_nothing(path, monkeypatch):
    make(path, VERSION_1)
    broken = {1: (*schema._MIGRATIONS[1], "ALTER TABLE nothing ADD COLUMN x")}
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_MIGRATIONS", broken)
        with pytest.raises(DatabaseError):
            Database(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert "ulps" not in str(columns(path))
    Database(path).close()
    assert recorded(path) == ["sin_1"]


def test_all_columns_are_explained():
    text = (ROOT / "g3doc/results.md").read_text()
    explained = set(re.findall(r"`(\w+)`", text))
    assert {*rows.columns(rows.Sweep), *rows.VERSIONS} - {"versions"} <= explained
    assert {*rows.ROW, "sweep"} <= explained
    assert f"| {schema.VERSION} |" in text
    assert hex(schema.APPLICATION) in text


# Files that are refused.


def foreign(path):
    make(path, "CREATE TABLE results (harness TEXT); INSERT INTO results VALUES ('theirs');")


def foreign_with_the_same_version(path):
    make(path, f"CREATE TABLE other (x); PRAGMA user_version = {schema.VERSION};")


def foreign_with_version_1(path):
    make(path, "CREATE TABLE sweeps (x); PRAGMA user_version = 1;")


def of_another_application(path):
    make(path, "PRAGMA application_id = 252006673; CREATE TABLE blob (x);")


def foreign_and_killed(path):
    """As `foreign`, by a program that was killed while it wrote."""
    make(path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);")
    killed_while(path, ["INSERT INTO theirs SELECT value FROM generated"])


def text(path):
    path.write_text("Dear diary,\n" * 1000)


def short(path):
    path.write_bytes(b"SQLite")


def later(path):
    record(path, ["sin_1"])
    make(path, "PRAGMA user_version = 99;")


def truncated(path):
    record(path, [f"sin_{i}" for i in range(300)])
    path.write_bytes(path.read_bytes()[: 3 * 4096])


def overwritten(path):
    record(path, [f"sin_{i}" for i in range(300)])
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 4] = os.urandom(2 * 4096)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (foreign, "something else than results"),
        (foreign_with_the_same_version, "something else than results"),
        (foreign_and_killed, "something else than results"),
        (foreign_with_version_1, "something else than results"),
        (of_another_application, "something else than results"),
        (text, "no SQLite file"),
        (short, "no SQLite file"),
        (later, "version 99 of the tables"),
        (truncated, "damaged"),
        (overwritten, "damaged"),
    ],
)
@pytest.mark.parametrize("writable", [True, False])
def test_a_file_that_cannot_be_used_is_refused_and_left_as_it_was(path, spoil, message, writable):
    spoil(path)
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.parent.iterdir()}
    with pytest.raises(DatabaseError, match=message) as error:
        Database(path, writable=writable)
    assert str(path) in str(error.value)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in path.parent.iterdir()} == before


def test_bytes_that_are_wrong_are_refused_or_read_as_they_are(path):
    record(path, [f"sin_{i}" for i in range(50)])
    whole = path.read_bytes()
    refused = 0
    for seed in range(150):
        rng = random.Random(seed)
        spoilt = bytearray(whole)
        for _ in range(rng.choice((1, 3, 20))):
            spoilt[rng.randrange(len(spoilt))] = rng.choice((0, 255, rng.randrange(256)))
        path.write_bytes(spoilt)
        try:
            recorded(path)
        except DatabaseError as error:
            assert str(path) in str(error)
            refused += 1
        assert path.read_bytes() == spoilt
    assert 50 < refused < 150


def test_a_foreign_file_whose_tables_are_still_in_its_log_is_refused(path, tmp_path):
    connection = sqlite3.connect(tmp_path / "original")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE theirs (x)")
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"original{end}", f"{path}{end}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match="something else"):
        Database(path)
    assert path.read_bytes() == before


def test_no_file_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(DatabaseError, match="no file"):
            Database(path)


@pytest.mark.parametrize("name", ["a b?c=d#e%20.sqlite", "\udce4.sqlite", "Größe.sqlite"])
def test_any_name_will_do(name, tmp_path):
    record(tmp_path / name, ["sin_1"])
    assert recorded(f"/{tmp_path / name}") == ["sin_1"]


def test_a_directory_and_a_missing_directory_are_named(tmp_path):
    with pytest.raises(DatabaseError, match="directory"):
        Database(tmp_path)
    with pytest.raises(DatabaseError, match="does its directory exist"):
        Database(tmp_path / "missing" / "sweep.sqlite")


def test_an_empty_file_is_new(path):
    path.touch()
    record(path, ["sin_1"])
    assert recorded(path) == ["sin_1"]


def test_readers_make_no_file(path):
    with pytest.raises(DatabaseError, match="has no results"):
        Database(path, writable=False)
    assert not path.exists()


# Several processes.


def _record_many(path, names):
    record(path, names)
    return len(recorded(path))


def test_processes_write_to_a_new_file_at_the_same_time(path):
    names = [[f"sin_{i}_{j}" for j in range(20)] for i in range(4)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(4, context) as pool:
        list(pool.map(_record_many, [path] * 4, names))
    assert sorted(recorded(path)) == sorted(name for of_one in names for name in of_one)


def test_a_sweep_that_has_been_replaced_says_so(path):
    with contextlib.closing(Database(path)) as first, contextlib.closing(Database(path)) as other:
        replaced, _ = first.begin(VERSIONS, SELECTION, "sources", fresh=False)
        sweep, _ = other.begin(VERSIONS, SELECTION, "other sources", fresh=False)
        other.record(sweep, [row("sin_1", Verdict.EQUAL)])
        with pytest.raises(DatabaseError, match="taken its place"):
            first.record(replaced, [row("sin_2", Verdict.EQUAL)])
    assert recorded(path) == ["sin_1"]


def test_a_reader_sees_what_a_writer_has_recorded_and_may_stay(path):
    with contextlib.closing(Database(path)) as writer:
        sweep, _ = writer.begin(VERSIONS, SELECTION, "sources", fresh=False)
        writer.record(sweep, [row("sin_1", Verdict.EQUAL)])
        with contextlib.closing(Database(path, writable=False)) as reader:
            assert [r.harness for r in reader.rows(sweep)] == ["sin_1"]
            writer.record(sweep, [row("sin_2", Verdict.EQUAL)])
            assert len(reader.rows(sweep)) == 2


def test_shards_are_no_finished_sweep_of_everything(path):
    record(path, ["sin_1"], finish=True, shard="1/2")
    with contextlib.closing(Database(path)) as database:
        assert database.finished(SELECTION) == []
        assert [sweep.shard for sweep in database.sweeps()] == ["1/2"]


# What happens to processes and disks.

WRITER = textwrap.dedent("""
    import itertools, sys
    from tests.harnesses.test_database_files import SELECTION, VERSIONS, Database, Verdict, row
    database = Database(sys.argv[1])
    sweep, _ = database.begin(VERSIONS, SELECTION, "sources", fresh=False)
    for i in itertools.count():
        database.record(sweep, [row(f"sin_{i:06}", Verdict.EQUAL, message="x" * 200)])
        print(i, flush=True)
""")


def test_a_killed_process_loses_nothing_that_was_recorded(path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, path], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    for _ in range(100):
        last = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait()
    last = int((rest or [last])[-1])
    names = recorded(path)
    assert names[: last + 1] == [f"sin_{i:06}" for i in range(last + 1)]
    assert len(names) <= last + 2
    record(path, ["sin_continued"])
    assert len(recorded(path)) == len(names) + 1


def test_a_full_disk_loses_nothing_that_was_recorded(path):
    """The disk is full when the file may not grow, as far as SQLite can tell."""
    record(path, [])
    program = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, -1))\n" + WRITER
    ended = subprocess.run(
        [sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "what had been recorded is kept" in ended.stderr
    last = int(ended.stdout.split()[-1])
    assert recorded(path) == [f"sin_{i:06}" for i in range(last + 1)]
    record(path, ["sin_continued"])
    assert len(recorded(path)) == last + 2


def test_a_new_file_on_a_full_disk(path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    usual = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        with pytest.raises(DatabaseError, match="cannot be"):
            Database(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, usual)
    record(path, ["sin_1"])
    assert recorded(path) == ["sin_1"]


@pytest.mark.parametrize("writable_first", [False, True])
def test_a_process_that_is_killed_while_it_makes_the_tables(path, writable_first):
    killed_while(path, list(schema._TABLES))
    assert path.stat().st_size
    if not writable_first:
        with pytest.raises(DatabaseError, match="has no results"):
            recorded(path)
    record(path, ["sin_1"])
    assert recorded(path) == ["sin_1"]


@pytest.mark.parametrize("writable_first", [False, True])
def test_a_process_that_is_killed_while_it_migrates(path, writable_first):
    make(path, VERSION_1)
    killed_while(path, list(schema._MIGRATIONS[1]))
    if writable_first:
        Database(path).close()
    assert recorded(path) == ["sin_1"]
    record(path, ["sin_2"])
    assert sorted(recorded(path)) == ["sin_1", "sin_2"]


UNPRIVILEGED = textwrap.dedent("""
    import ctypes, os, sys
    if os.geteuid() == 0:  # Root without capabilities may write to no more files than others.
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        assert ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) == 0
    from tests.harnesses.test_database_files import DatabaseError, pathlib, record, recorded
    path = pathlib.Path(sys.argv[1])
    print(*recorded(path))
    try:
        record(path, ["sin_2"])
    except DatabaseError as error:
        print(error)
""")


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_that_is_read_only_can_be_read(path, killed):
    """Also if the process that wrote it was killed, so that its last results are in the log."""
    record(path, ["sin_1"])
    with contextlib.closing(Database(path)) as writer:
        sweep, _ = writer.begin(VERSIONS, SELECTION, "sources", fresh=False)
        writer.record(sweep, [row("sin_in_log", Verdict.EQUAL)])
        copy = path.parent / "copy"
        copy.mkdir()
        if killed:
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", copy)
    if not killed:
        shutil.copy(path, copy)
    for file in copy.iterdir():
        file.chmod(0o444)
    copy.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, copy / path.name],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    copy.chmod(0o755)
    assert done.returncode == 0, done.stderr
    read, refused = done.stdout.splitlines()
    assert read == "sin_1 sin_in_log"
    assert re.search(r"cannot be (written|opened)", refused)
    assert recorded(copy / path.name) == ["sin_1", "sin_in_log"]
