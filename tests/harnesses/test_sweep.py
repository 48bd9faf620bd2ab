"""A sweep survives cells that crash or hang, and can be interrupted and continued."""

import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from harnesses import sweep
from harnesses.harness import Harness
from tests.harnesses.engines import EqualEngine
from tests.helpers import ROOT, counts
from tools import merge_results
from tools import sweep as command


def start(database: pathlib.Path, *args: str) -> subprocess.Popen:
    """Starts a sweep of the misbehaving harnesses in a process group of its own."""
    module = "tests.harnesses.misbehaving"
    return subprocess.Popen(
        [sys.executable, "-m", module, "--database", str(database), *args],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def cells(database: pathlib.Path) -> list[sqlite3.Row]:
    connection = sqlite3.connect(database, timeout=10)
    connection.row_factory = sqlite3.Row
    try:
        return connection.execute("SELECT * FROM cells").fetchall()
    except sqlite3.OperationalError:  # There is no table yet.
        return []
    finally:
        connection.close()


def wait_until(condition, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """The exit code, output and results of a sweep of harnesses that misbehave."""
    database = tmp_path_factory.mktemp("sweep") / "sweep.sqlite"
    primitives = "abort fine hang harness refused stale wrong".split()
    filters = [f"--primitive=bad_{name}" for name in primitives]
    options = "--target=tf --mode=eager --mode=graph --variants=none --timeout=8".split()
    process = start(database, *filters, *options)
    output, _ = process.communicate(timeout=300)
    results = {(row["primitive"], row["mode"]): row for row in cells(database)}
    return process.returncode, output.splitlines(), results


@pytest.mark.parametrize(
    ("primitive", "mode", "outcome", "verdict"),
    [
        ("bad_fine", "eager", "equal", "equal"),
        ("bad_fine", "graph", "equal", "equal"),
        ("bad_abort", "eager", "equal", "equal"),
        ("bad_abort", "graph", "crash", "unexpected"),
        ("bad_hang", "eager", "timeout", "unexpected"),
        ("bad_hang", "graph", "equal", "equal"),
        ("bad_wrong", "eager", "different", "unexpected"),
        ("bad_wrong", "graph", "different", "unexpected"),
        ("bad_refused", "eager", "lowering error", "limited"),
        ("bad_refused", "graph", "lowering error", "limited"),
        ("bad_stale", "eager", "equal", "equal"),
        ("bad_stale", "graph", "equal", "stale"),
        ("bad_harness", "eager", "harness error", "unexpected"),
    ],
)
def test_only_the_guilty_cell_fails(bad, primitive, mode, outcome, verdict):
    _, _, results = bad
    row = results[primitive, mode]
    assert (row["outcome"], row["verdict"]) == (outcome, verdict)


def test_every_cell_has_a_result_with_versions(bad):
    _, _, results = bad
    assert len(results) == 14
    assert all(row["jax"] and row["tensorflow"] and row["python"] for row in results.values())


def test_messages_say_what_happened(bad):
    _, _, results = bad
    assert "SIGABRT" in results["bad_abort", "graph"]["message"]
    expected = r"UnsendableError: no \udce4rguments"
    assert results["bad_harness", "eager"]["message"] == expected
    assert "result 0 at [0]" in results["bad_wrong", "graph"]["message"]


def test_exit_code_and_last_line_of_a_red_sweep(bad):
    returncode, output, _ = bad
    assert returncode == 1
    assert output[-1] == counts(14, equal=5, failed=2, bad=6, passed=2)
    assert any("No harness has this dtype." in line for line in output)


def test_interrupted_sweeps_are_continued(tmp_path):
    database = tmp_path / "sweep.sqlite"
    filters = ("--primitive=bad_slow", "--target=tf", "--mode=eager", "--variants=none")

    process = start(database, *filters)
    wait_until(lambda: len(cells(database)) >= 3)
    process.kill()
    process.communicate()
    wait_until(lambda: not is_alive(process))
    killed = {row["harness"]: tuple(row) for row in cells(database)}

    process = start(database, *filters)
    wait_until(lambda: len(cells(database)) >= len(killed) + 3)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 130
    assert f"continuing an interrupted sweep: {len(killed)} of 25 cells are done" in output
    stopped = {row["harness"]: tuple(row) for row in cells(database)}
    assert output.splitlines()[-1].startswith(f"interrupted after {len(stopped)} of 25 cells")
    assert len(killed) < len(stopped) < 25
    assert killed.items() <= stopped.items()

    process = start(database, *filters)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    assert output.splitlines()[-1] == counts(25, equal=25)
    assert stopped.items() <= {row["harness"]: tuple(row) for row in cells(database)}.items()


def is_alive(process: subprocess.Popen) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def some() -> dict[str, Harness]:
    """Harnesses that no engine has to run."""
    args = (np.zeros(3, np.float32),)
    return {f"sign_{i}": Harness("sign", str(i), np.sign, args) for i in range(20)}


def test_shards_are_merged_to_a_complete_sweep(tmp_path, monkeypatch):
    """Which engine runs the cells makes no difference to shards, so that none has to start."""
    monkeypatch.setattr(sweep, "LocalEngine", lambda workers: EqualEngine())
    filters = ("--primitive=sign", "--target=tf", "--mode=eager", "--variants=none")
    files = [tmp_path / "1.sqlite", tmp_path / "2.sqlite"]
    for number, file in enumerate(files, 1):
        argv = (*filters, f"--shard={number}/2", "--database", str(file))
        assert command.main(argv, catalogue=some) == 0
    merged = tmp_path / "merged.sqlite"
    assert merge_results.main([*map(str, files), "--into", str(merged)]) == 0
    harnesses = [{row["harness"] for row in cells(file)} for file in files]
    assert not harnesses[0] & harnesses[1]
    assert all(harnesses)
    assert {row["harness"] for row in cells(merged)} == harnesses[0] | harnesses[1] == set(some())
