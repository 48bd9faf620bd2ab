"""The comparison of two sweeps says what is better, worse and slower."""

import dataclasses
import resource
import subprocess
import sys

import pytest

from harnesses.cell import Verdict
from tests.helpers import ROOT
from tests.tools.synthetic import VERSIONS, cell, many, write
from tools import compare_results

LIMITED = {"verdict": Verdict.LIMITED, "limitation": "There is no kernel."}
OTHER = dataclasses.replace(VERSIONS, jax="2.0")


@pytest.fixture
def compare(tmp_path, capsys):
    """Compares two lists of results; returns the exit code and the lines that are printed."""

    def compare(old, new, *options):
        paths = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
        for path, rows in zip(paths, (old, new), strict=True):
            write(path, rows)
        code = compare_results.main([*options, *map(str, paths)])
        return code, capsys.readouterr().out.splitlines()

    return compare


def test_nothing_is_different(compare):
    code, lines = compare([cell("sin_1")], [cell("sin_1")])
    assert code == 0
    assert lines[-2].startswith("1 cell compared, 0 gone, 0 added")
    assert lines[-1] == "0 worse, 0 better, 0 slower, 0 limitations with new unexpected passes"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"verdict": Verdict.UNEXPECTED}),
        ({}, {**LIMITED, "outcome": "lowering error"}),
        ({}, {"verdict": Verdict.UNEXPECTED, "outcome": "timeout"}),
        (LIMITED, {"verdict": Verdict.UNEXPECTED}),
        ({"verdict": Verdict.UNEXPECTED}, {"verdict": Verdict.UNEXPECTED, "outcome": "TF error"}),
        (
            {"verdict": Verdict.UNEXPECTED, "outcome": "TF error"},
            {"verdict": Verdict.UNEXPECTED, "outcome": "crash"},
        ),
        ({"verdict": Verdict.STALE}, {"verdict": Verdict.UNEXPECTED}),
    ],
)
def test_worse_is_a_regression_and_the_other_way_round_is_better(old, new, compare):
    code, lines = compare([cell("sin_1", **old)], [cell("sin_1", **new, message="<why>")])
    assert code == 1
    assert lines[1] == "worse:"
    assert lines[2].startswith("  sin_1, eager on tf (cpu): ") and lines[2].endswith(": <why>")
    assert lines[-1].startswith("1 worse, 0 better, 0 slower")
    code, lines = compare([cell("sin_1", **new)], [cell("sin_1", **old)])
    assert code == 0
    assert lines[1] == "better:"
    assert lines[-1].startswith("0 worse, 1 better, 0 slower")


def test_a_cell_that_was_not_run_before_is_worse_if_it_is_unexpected(compare):
    new = [cell("sin_1"), cell("sin_2", Verdict.UNEXPECTED), cell("sin_3", Verdict.LIMITED)]
    code, lines = compare([cell("sin_1"), cell("sin_0")], new)
    assert code == 1
    assert "sin_2, eager on tf (cpu): not run -> different" in lines[2]
    assert lines[-2].startswith("1 cell compared, 1 gone, 2 added")


def test_a_variant_that_jax_cannot_make_is_not_run(compare):
    none = cell("sin_1", Verdict.NO_VARIANT, variant="vmap")
    code, lines = compare([cell("sin_1"), none], [cell("sin_1"), none])
    assert code == 0
    assert lines[-2].startswith("1 cell compared, 0 gone, 0 added")


def test_slower_cells(compare):
    seconds = {"sin_a": (0.1, 0.9), "sin_b": (1.0, 9.0), "sin_c": (0.01, 0.3), "sin_d": (9, 12)}
    old = [cell(name, seconds=before) for name, (before, _) in seconds.items()]
    new = [cell(name, seconds=now) for name, (_, now) in seconds.items()]
    code, lines = compare(old, new)
    assert code == 0
    assert lines[1:4] == [
        "slower:",
        "  sin_b, eager on tf (cpu): 1.00 s -> 9.00 s",
        "  sin_a, eager on tf (cpu): 0.10 s -> 0.90 s",
    ]
    assert compare(old, new, "--slower-fails")[0] == 1
    assert compare(old, new, "--slower-fails", "--slower=10")[0] == 0
    assert "3 slower" in compare(old, new, "--slower=1.2")[1][-1]
    assert compare(new, old, "--slower-fails")[0] == 0


def test_limitations_that_became_stale_are_named_once(compare):
    old = [cell(f"sin_{i}", **LIMITED, outcome="TF error") for i in range(3)]
    stale = {"verdict": Verdict.STALE, "limitation": "There is no kernel."}
    code, lines = compare(old, [cell(f"sin_{i}", **stale) for i in range(3)])
    assert code == 0
    assert "  sin: 'There is no kernel.' (3 cells)" in lines
    assert lines[-1] == "0 worse, 3 better, 0 slower, 1 limitation with new unexpected passes"
    rows = [cell("sin_1", **stale)]
    assert compare(rows, rows)[1][-1].endswith("0 limitations with new unexpected passes")


def test_other_versions_are_compared_if_each_file_has_one(tmp_path, capsys):
    old = write(tmp_path / "old.sqlite", [cell("sin_1")])
    new = write(tmp_path / "new.sqlite", [cell("sin_1", Verdict.UNEXPECTED)], OTHER)
    assert compare_results.main([str(old), str(new)]) == 1
    assert "JAX 1.0" in capsys.readouterr().out
    write(new, [cell("sin_1")])
    write(old, [cell("sin_1", Verdict.UNEXPECTED)], OTHER)
    assert compare_results.main([str(old), str(new)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line for line in lines if line.startswith("JAX")} == {str(VERSIONS), str(OTHER)}


def test_what_cannot_be_compared(tmp_path, capsys):
    old = write(tmp_path / "old.sqlite", [cell("sin_1")])
    assert compare_results.main([str(old), str(tmp_path / "missing.sqlite")]) == 2
    assert "has no results" in capsys.readouterr().err
    (tmp_path / "text").write_text("Dear diary")
    assert compare_results.main([str(tmp_path / "text"), str(old)]) == 2
    assert "no SQLite file" in capsys.readouterr().err
    empty = write(tmp_path / "empty.sqlite", [])
    assert compare_results.main([str(old), str(empty)]) == 2
    assert "results of nothing" in capsys.readouterr().err
    other = write(tmp_path / "other.sqlite", [cell("cos_1")])
    assert compare_results.main([str(old), str(other)]) == 2
    assert "no cell in common" in capsys.readouterr().err


def test_a_hundred_thousand_cells_take_less_than_two_seconds(tmp_path):
    old = write(tmp_path / "old.sqlite", many(100_000))
    new = write(tmp_path / "new.sqlite", many(100_000, seed=1))
    command = [sys.executable, "-m", "tools.compare_results", str(old), str(new)]
    seconds = []
    # The least time of the processor in some turns, as the machine may do other work, too.
    while len(seconds) < 5 and not (seconds and min(seconds) < 2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "100,000 cells compared" in ended.stdout
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 2
