"""A sweep survives what its cells do, is continued where it stopped, and tells what it found."""

import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from harnesses import cell
from harnesses.cell import Verdict
from harnesses.database import Database, Row, Versions
from harnesses.harness import Harness
from harnesses.runs import Runs, key_of
from harnesses.sweep import Report, Selection, SelectionError
from limitations import Limitation
from tools import sweep

ROOT = pathlib.Path(__file__).parents[1]

HARNESSES = {
    harness.name: harness
    for harness in (
        Harness("sin", "float32", None, dtype="float32"),
        Harness("sin", "float64", None, dtype="float64"),
        Harness("sort", "int8", None, dtype="int8"),
    )
}


def start(database: pathlib.Path, *args: str) -> subprocess.Popen:
    """Starts a sweep of the misbehaving harnesses in a process group of its own."""
    command = [sys.executable, "tests/misbehaving.py", "--database", str(database), *args]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
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
    process = start(
        database, *filters, "--target=tf", "--mode=eager", "--mode=graph", "--timeout=8"
    )
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
    assert "no arguments" in results["bad_harness", "eager"]["message"]
    assert "result 0 at [0]" in results["bad_wrong", "graph"]["message"]


def test_exit_code_and_last_line_of_a_red_sweep(bad):
    returncode, output, _ = bad
    assert returncode == 1
    assert output[-1] == "14 cells: 5 equal, 2 limited, 6 unexpected, 2 stale"
    assert any("No harness has this dtype." in line for line in output)


def test_interrupted_sweeps_are_continued(tmp_path):
    database = tmp_path / "sweep.sqlite"
    filters = ("--primitive=bad_slow", "--target=tf", "--mode=eager")

    process = start(database, *filters)
    wait_until(lambda: len(cells(database)) >= 3)
    process.kill()
    process.communicate()
    wait_until(lambda: not is_alive(process))
    killed = {row["harness"]: tuple(row) for row in cells(database)}

    process = start(database, *filters)
    wait_until(lambda: len(cells(database)) >= len(killed) + 3)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"continuing an interrupted sweep: {len(killed)} of 25 cells are done" in output
    stopped = {row["harness"]: tuple(row) for row in cells(database)}
    assert output.splitlines()[-1].startswith(f"interrupted after {len(stopped)} of 25 cells")
    assert len(killed) < len(stopped) < 25
    assert killed.items() <= stopped.items()

    process = start(database, *filters)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert output.splitlines()[-1] == "25 cells: 25 equal, 0 limited, 0 unexpected, 0 stale"
    assert stopped.items() <= {row["harness"]: tuple(row) for row in cells(database)}.items()


def is_alive(process: subprocess.Popen) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_selection():
    assert list(Selection().cells(HARNESSES)) == list(HARNESSES)
    selection = Selection(primitives=("si*",), dtypes=("float32",), modes=("graph",))
    selected = selection.cells(HARNESSES)
    assert list(selected) == ["sin_float32"]
    assert {cell.mode for cell in selected["sin_float32"]} == {"graph"}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"primitives": ["sinn"]}, "no harness has the primitive 'sinn'; did you mean sin?"),
        ({"dtypes": ["float33"]}, "no harness has the dtype 'float33'; did you mean float32"),
        ({"primitives": ["sort"], "dtypes": ["float32"]}, "no harness has the dtype 'float32'"),
        ({"modes": ["lazy"]}, "no harness has the mode 'lazy'; known: eager, graph, compiled"),
        ({"targets": ["torch"]}, "no harness has the target 'torch'"),
        ({"devices": ["npu"]}, "no harness has the device 'npu'"),
        ({"devices": ["tpu"]}, "TensorFlow finds no device 'tpu' on this machine"),
    ],
)
def test_filters_that_select_nothing(filters, message):
    with pytest.raises(SelectionError) as error:
        Selection(**filters).cells(HARNESSES)
    assert message in str(error.value)


def test_exit_code_of_a_filter_that_selects_nothing(tmp_path, capfd):
    argv = ["--primitive=sinn", "--database", str(tmp_path / "sweep.sqlite")]
    assert sweep.main(argv, catalogue=lambda: HARNESSES) == 2
    assert "did you mean sin?" in capfd.readouterr().err


def row(harness: str, verdict: Verdict, **values) -> Row:
    fields = {name: "" for name in Row.__dataclass_fields__}
    fields |= {"harness": harness, "primitive": "sin", "error": 0.0, "seconds": 0.1}
    return Row(**{**fields, "verdict": str(verdict), **values})


def test_report_of_a_green_sweep(capsys):
    rows = [row("sin_1", Verdict.EQUAL), row("sin_2", Verdict.LIMITED)]
    report = Report(rows, unused=[], complete=True)
    sweep.print_report(report, verbose=False)
    lines = capsys.readouterr().out.splitlines()
    assert report.is_green
    assert lines[1].split()[:6] == ["sin", "2", "1", "1", "0", "0"]
    assert lines[-1] == "2 cells: 1 equal, 1 limited, 0 unexpected, 0 stale"


def test_an_unused_limitation_is_stale(capsys):
    limitation = Limitation("An old reason.", error="crash")
    report = Report([row("sin_1", Verdict.EQUAL)], unused=[("sin", limitation)], complete=True)
    sweep.print_report(report, verbose=False)
    lines = capsys.readouterr().out.splitlines()
    assert not report.is_green
    assert "An old reason." in lines[0]
    assert lines[-1] == "1 cells: 1 equal, 0 limited, 0 unexpected, 1 stale"


VERSIONS = Versions("1", "1", "2", "3", "3.11")


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "sweep.sqlite")
    yield database
    database.close()


def test_only_an_unfinished_sweep_of_the_same_sources_is_continued(database):
    selection = Selection().as_data()
    first = database.begin(VERSIONS, selection, "sources", fresh=False)
    database.record(first, [row("sin_1", Verdict.EQUAL)])
    assert database.begin(VERSIONS, selection, "sources", fresh=False) == first
    assert [r.harness for r in database.rows(first)] == ["sin_1"]

    changed = database.begin(VERSIONS, selection, "other sources", fresh=False)
    assert database.rows(changed) == []
    database.record(changed, [row("sin_1", Verdict.EQUAL)])
    assert database.rows(database.begin(VERSIONS, selection, "other sources", fresh=True)) == []

    last = database.begin(VERSIONS, selection, "other sources", fresh=False)
    database.finish(last)
    assert database.finished(selection) == [(last, VERSIONS)]
    database.begin(VERSIONS, selection, "other sources", fresh=False)
    assert database.finished(selection) == []


def test_sweeps_of_other_versions_are_kept(database):
    selection = Selection().as_data()
    other = Versions("9", "9", "2", "3", "3.12")
    for versions in (VERSIONS, other):
        sweep_id = database.begin(versions, selection, "sources", fresh=False)
        database.record(sweep_id, [row(f"sin_{versions.jax}", Verdict.EQUAL)])
        database.finish(sweep_id)
    found = {
        versions: database.rows(sweep_id) for sweep_id, versions in database.finished(selection)
    }
    assert {v: [r.harness for r in rows] for v, rows in found.items()} == {
        VERSIONS: ["sin_1"],
        other: ["sin_9"],
    }


@pytest.mark.parametrize("kept", [False, True])
def test_targets_share_the_run_of_a_graph_with_loops(kept, tmp_path, monkeypatch):
    harness = Harness("eig", "eigvals", jnp.linalg.eigvals, (np.eye(3, dtype=np.float32),))
    directory = tmp_path / "runs" if kept else None
    runs, made = Runs(directory), []
    keep = Runs.keep
    monkeypatch.setattr(Runs, "keep", lambda *args: (made.append(args), keep(*args)))
    cells = cell.cells_of(harness, modes=["graph"])
    for result in cell.run(harness, cells, runs):
        assert result.verdict == Verdict.EQUAL, result
    assert len(made) == 1
    for result in cell.run(harness, cells, Runs(directory)):
        assert result.verdict == Verdict.EQUAL, result
    assert len(made) == (1 if kept else 2)


def _key(fun, x, mode="graph"):
    concrete = tf.function(fun).get_concrete_function(x)
    return key_of(concrete.graph.as_graph_def(), [x.numpy()], mode)


def test_runs_are_told_apart_by_graph_arguments_and_circumstances():
    x = tf.constant([1.0, 2.0])
    keys = [
        _key(tf.sin, x),
        _key(tf.cos, x),
        _key(lambda x: tf.sin(x) + 1.0, x),
        _key(lambda x: tf.sin(x) + 2.0, x),
        _key(lambda x: tf.cond(x[0] > 0, lambda: tf.sin(x), lambda: x), x),
        _key(lambda x: tf.cond(x[0] > 0, lambda: tf.cos(x), lambda: x), x),
        _key(tf.sin, tf.constant([1.0, 3.0])),
        _key(tf.sin, x, "compiled"),
    ]
    assert len(set(keys)) == len(keys)
    assert _key(tf.sin, x) == keys[0]
