"""What a sweep prints at its end."""

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
