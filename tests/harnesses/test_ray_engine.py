"""Two processes of Ray run what those of the local engine run, and lose nothing when killed."""

import contextlib
import functools
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from harnesses.engines.ray import processes_of_actors
from tests.helpers import ROOT, counts
from tools import sweep

pytest.importorskip("ray")

RAY = ("--ray", "--workers=2", "--variants=none", "--target=tf")


def start(database: pathlib.Path, *args: str) -> subprocess.Popen:
    """Starts a sweep of the harnesses that misbehave by two workers of Ray."""
    command = [sys.executable, "-m", "tests.harnesses.sweeping", "--database", str(database)]
    return subprocess.Popen(
        [*command, *RAY, *args],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def cells(database: pathlib.Path) -> dict[tuple[str, str], sqlite3.Row]:
    """What is recorded, by harness and mode."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection:
        connection.row_factory = sqlite3.Row
        try:
            found = connection.execute("SELECT * FROM cells").fetchall()
        except sqlite3.OperationalError:  # There is no table yet.
            return {}
    return {(row["harness"], row["mode"]): row for row in found}


def wait_until(condition, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


def descendants(process: int) -> dict[int, str]:
    """The processes that a process has started, directly or not, with their names."""
    parents, names = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, rest = (path / "stat").read_text().partition("(")[2].rpartition(")")
            parents[int(path.name)] = int(rest.split()[1])
            names[int(path.name)] = name

    def is_descendant(of: int) -> bool:
        while of in parents and of != process:
            of = parents[of]
        return of == process

    return {number: names[number] for number in parents if is_descendant(number)}


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """The exit code, output and results of a sweep of harnesses that misbehave."""
    database = tmp_path_factory.mktemp("sweep") / "sweep.sqlite"
    primitives = "abort fine hang harness refused stale wrong".split()
    filters = [f"--primitive=bad_{name}" for name in primitives]
    process = start(database, *filters, "--mode=eager", "--mode=graph", "--timeout=8")
    output, _ = process.communicate(timeout=300)
    return process.returncode, output.splitlines(), cells(database)


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
        ("bad_refused", "graph", "lowering error", "limited"),
        ("bad_stale", "graph", "equal", "stale"),
        ("bad_harness", "eager", "harness error", "unexpected"),
    ],
)
def test_only_the_guilty_cell_fails(bad, primitive, mode, outcome, verdict):
    _, _, results = bad
    row = results[f"{primitive}_case", mode]
    assert (row["outcome"], row["verdict"]) == (outcome, verdict)


def test_the_report_is_that_of_one_machine(bad):
    returncode, output, results = bad
    assert returncode == 1
    assert len(results) == 14
    assert output[-1] == counts(14, equal=5, failed=2, bad=6, passed=2)
    expected = r"UnsendableError: no \udce4rguments"
    assert results["bad_harness_case", "eager"]["message"] == expected


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere", "a:b", "auto"])
def test_an_address_without_a_cluster_is_an_error_at_once(address, tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # "auto" would take a cluster of this machine, as of a test that runs at the same time, and end
    # this process when that cluster ends.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", functools.cache(set))
    monkeypatch.setattr("ray._private.services.find_bootstrap_address", lambda directory: None)
    argv = ["--primitive=sin", "--database", str(tmp_path / "sweep.sqlite"), "--ray", address]
    start = time.monotonic()
    assert sweep.main(argv) == 2
    assert time.monotonic() - start < 60
    error = capfd.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and repr(address) in error


def test_a_killed_worker_costs_no_cell(tmp_path):
    database = tmp_path / "sweep.sqlite"
    process = start(database, "--primitive=bad_slow", "--mode=eager")
    wait_until(lambda: len(cells(database)) >= 3)
    (actor,) = [n for n, name in descendants(process.pid).items() if "_Worker" in name]
    (_, *running) = sorted(descendants(actor))
    # Workers of less priority would not run beside other work.
    assert {os.getpriority(os.PRIO_PROCESS, n) for n in (actor, *running)} == {os.nice(0)}
    os.kill(running[-1], signal.SIGKILL)
    wait_until(lambda: len(cells(database)) >= 6)
    before = {key: tuple(row) for key, row in cells(database).items()}
    os.kill(actor, signal.SIGKILL)
    wait_until(lambda: not any(pathlib.Path(f"/proc/{n}/cmdline").exists() for n in running))
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    assert output.splitlines()[-1] == counts(25, equal=25)
    # What had been recorded has not been run again.
    assert before.items() <= {key: tuple(row) for key, row in cells(database).items()}.items()


def test_a_worker_is_silent_while_cells_hang_one_after_the_other(tmp_path):
    """A task hangs, then a cell of it alone: nothing comes for twice the timeout of a task."""
    database = tmp_path / "sweep.sqlite"
    script = (
        "import sys; from harnesses.engines import ray; ray._PATIENCE = 10;"
        "from tests.harnesses.misbehaving import catalogue; from tools import sweep;"
        "sys.exit(sweep.main(sys.argv[1:], catalogue=catalogue))"
    )
    filters = "--primitive=bad_hang", "--mode=eager", "--target=tf", "--target=xla"
    args = *filters, "--variants=none", "--timeout=12", "--ray", "--workers=1"
    command = [sys.executable, "-c", script, "--database", str(database), *args]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == counts(2, bad=2)


@pytest.mark.parametrize(
    ("cores", "limit", "expected"),
    [
        ([2], 2, [2]),
        ([2], 1, [1]),
        ([6, 3], 100, [4, 2, 3]),
        ([6, 3], 5, [4, 1]),
        ([0, 1], 3, [1]),
        ([], 3, []),
    ],
)
def test_processes_of_actors(cores, limit, expected):
    assert processes_of_actors(cores, limit) == expected


def test_a_killed_driver_loses_nothing_that_was_recorded(tmp_path):
    database = tmp_path / "sweep.sqlite"
    process = start(database, "--primitive=bad_slow", "--mode=eager")
    wait_until(lambda: len(cells(database)) >= 3)
    workers = [n for n, name in descendants(process.pid).items() if "_Worker" in name]
    process.kill()
    process.communicate()
    killed = {key: tuple(row) for key, row in cells(database).items()}
    assert 3 <= len(killed) < 25
    # Workers end with the process that has started Ray.
    wait_until(lambda: not any(pathlib.Path(f"/proc/{n}/cmdline").exists() for n in workers))
    process = start(database, "--primitive=bad_slow", "--mode=eager")
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    assert f"continuing an interrupted sweep: {len(killed)} of 25 cells are done" in output
    assert output.splitlines()[-1] == counts(25, equal=25)
    assert killed.items() <= {key: tuple(row) for key, row in cells(database).items()}.items()
