"""What a sweep prints at its end."""

import os
import subprocess
import sys
import textwrap

import pytest

import harnesses.sweep
from harnesses.cell import Verdict
from harnesses.sweep import Report
from limitations import Limitation
from results import locks
from results.files import DatabaseError
from tests.harnesses.engines import EqualEngine
from tests.harnesses.rows import row
from tests.helpers import ROOT, counts
from tools import sweep
from tools.terminal import log_of


def test_report_of_a_green_sweep(capsys):
    rows = [row("sin_1", Verdict.EQUAL), row("sin_2", Verdict.LIMITED)]
    report = Report(rows, unused=[], complete=True)
    sweep.print_report(report, verbose=False)
    lines = capsys.readouterr().out.splitlines()
    assert report.is_green
    assert lines[1].split()[:6] == ["sin", "2", "1", "1", "0", "0"]
    assert lines[-1] == counts(2, equal=1, failed=1)


def test_a_sweep_says_what_it_does_before_it_imports_what_takes_long(tmp_path):
    (tmp_path / "jax.py").write_text("raise SystemExit('imported')")
    command = [sys.executable, "-m", "tools.sweep"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stderr.splitlines() == ["importing JAX and TensorFlow ...", "imported"]
    assert not done.stdout


def test_an_interrupt_ends_a_sweep_that_is_importing(tmp_path):
    """Even if what is imported ignores the exception of an interrupt."""
    code = """
import signal

try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass
raise SystemExit("imported")
"""
    (tmp_path / "jax.py").write_text(code)
    command = [sys.executable, "-m", "tools.sweep"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr.splitlines() == ["importing JAX and TensorFlow ...", "interrupted"]


def test_an_unused_limitation_is_stale(capsys):
    limitation = Limitation("An old reason.", error="crash")
    report = Report([row("sin_1", Verdict.EQUAL)], unused=[("sin", limitation)], complete=True)
    sweep.print_report(report, verbose=False)
    lines = capsys.readouterr().out.splitlines()
    assert not report.is_green
    assert "An old reason." in lines[0]
    assert lines[-1] == counts(1, equal=1, passed=1)


def test_a_database_that_cannot_be_used_is_an_error_and_its_neighbours_are_kept(tmp_path, capsys):
    path, log = tmp_path / "diary.sqlite", tmp_path / "diary.sqlite.log"
    path.write_text("Dear diary")
    log.write_text("of somebody else")
    assert sweep.main(["--primitive=sin", "--database", str(path)]) == 2
    assert "no SQLite file" in capsys.readouterr().err
    assert (path.read_text(), log.read_text()) == ("Dear diary", "of somebody else")


@pytest.mark.parametrize(
    "argv",
    [
        ["--shard=3/2"],
        ["--shard=half"],
        ["--workers=0"],
        ["--workers=two"],
        ["--timeout=0"],
        ["--timeout=nan"],
        ["--timeout=inf"],
    ],
)
def test_options_that_make_no_sense(argv, capsys):
    with pytest.raises(SystemExit) as error:
        sweep.main(argv)
    assert error.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_log_of_the_user_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(harnesses.sweep, "LocalEngine", lambda workers: EqualEngine())
    log = tmp_path / "run.log"
    log.write_text("of the user")
    argv = ["--primitive=sin", "--mode=eager", "--variants=none", "--database"]
    assert sweep.main([*argv, str(tmp_path / "run.sqlite")]) == 0
    assert log.read_text() == "of the user"
    assert sweep.main([*argv, str(log)]) == 2
    assert log.read_text() == "of the user"
    # No lock is left.
    assert {p.name for p in tmp_path.iterdir()} == {"run.log", "run.sqlite", "run.sqlite.log"}


def test_two_sweeps_of_the_same_cells_at_the_same_time(tmp_path, monkeypatch):
    path = tmp_path / "sweep.sqlite"
    argv = ["--primitive=sin", "--mode=eager", "--variants=none", f"--database={path}"]
    codes, said = [], []

    class Meanwhile(EqualEngine):
        """An engine that meets others: what they print goes to the log of this sweep."""

        def run(self, tasks, job):
            if not codes:
                codes.append(sweep.main(argv))
                said.extend(log_of(path).read_text().splitlines())
                # Other cells are other work.
                codes.append(sweep.main([*argv, "--target=tf"]))
            yield from super().run(tasks, job)

    monkeypatch.setattr(harnesses.sweep, "LocalEngine", lambda workers: Meanwhile())
    assert sweep.main(argv) == 0
    assert codes == [2, 0]
    expected = f"error: another process is sweeping the same cells into {path}; "
    assert said[-1].startswith(expected)


def test_locks_end_with_their_process(tmp_path):
    path = tmp_path / "sweep.sqlite"
    body = f"""
        import time
        from results import locks
        with locks.held({str(path)!r}, "work"):
            print("held", flush=True)
            time.sleep(600)
    """
    command = [sys.executable, "-c", textwrap.dedent(body)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(DatabaseError, match="another process"), locks.held(path, "work"):
            pass
        with locks.held(path, "other work"):
            pass
        process.kill()
    with locks.held(path, "work"):
        pass
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_written_are_named(tmp_path, capsys):
    (tmp_path / "taken.sqlite.log").mkdir()
    (tmp_path / "file").touch()
    options = {
        "missing/sweep.sqlite.log": [f"--database={tmp_path}/missing/sweep.sqlite"],
        "taken.sqlite.log": [f"--database={tmp_path}/taken.sqlite"],
        "file": [f"--database={tmp_path}/sweep.sqlite", f"--runs={tmp_path}/file"],
    }
    for name, argv in options.items():
        assert sweep.main(["--primitive=sin", *argv]) == 2
        (error,) = capsys.readouterr().err.splitlines()
        assert error.startswith(f"error: {tmp_path}/{name} cannot be written")
    assert sweep.main(["--primitive=sin", "--database", str(tmp_path)]) == 2
