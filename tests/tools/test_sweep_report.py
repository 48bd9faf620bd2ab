"""What a sweep prints at its end."""

import pytest

from harnesses.cell import Verdict
from harnesses.sweep import Report
from limitations import Limitation
from tests.harnesses.rows import row
from tools import sweep


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


def test_a_database_that_cannot_be_used_is_an_error_and_its_neighbours_are_kept(tmp_path, capsys):
    path, log = tmp_path / "diary.sqlite", tmp_path / "diary.log"
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
        ["--database=sweep.log"],
    ],
)
def test_options_that_make_no_sense(argv, capsys):
    with pytest.raises(SystemExit) as error:
        sweep.main(argv)
    assert error.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_files_that_cannot_be_written_are_named(tmp_path, capsys):
    (tmp_path / "taken.log").mkdir()
    (tmp_path / "file").touch()
    options = {
        "missing/sweep.log": [f"--database={tmp_path}/missing/sweep.sqlite"],
        "taken.log": [f"--database={tmp_path}/taken.sqlite"],
        "file": [f"--database={tmp_path}/sweep.sqlite", f"--runs={tmp_path}/file"],
    }
    for name, argv in options.items():
        assert sweep.main(["--primitive=sin", *argv]) == 2
        (error,) = capsys.readouterr().err.splitlines()
        assert error.startswith(f"error: {tmp_path}/{name} cannot be written")
    assert sweep.main(["--primitive=sin", "--database", str(tmp_path)]) == 2
