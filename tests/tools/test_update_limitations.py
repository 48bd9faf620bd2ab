"""Limitations are proposed as a diff, after which unexpected and stale results are as expected."""

import dataclasses
import itertools
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses import cell as cells
from harnesses import proposals
from harnesses.cell import SWEPT, Cell, Outcome, Verdict
from harnesses.harness import Harness
from limitations import Limitation, Looser
from limitations.limitation import all_limitations
from results.rows import Row
from tests.helpers import ROOT
from tools import new_primitive, update_limitations

REFUSED = "UnsupportedError: sine(f32[3,4]) at /home/a/model.py:33:8 (main) has no (good) sine [1]"
CASES = (
    *("shape=(3,)_int8", "shape=(3,)_int16", "domain_float32", "empty_float32", "inf_float32"),
    "inf_float64",
)


def catalogue(primitive):
    harnesses = [
        Harness(primitive, case, np.sin, (np.zeros(3, case.rpartition("_")[2]),)) for case in CASES
    ]
    return {harness.name: harness for harness in harnesses}


def rows_of(primitive, fails=lambda case, cell: None):
    """The result of each plain cell; `fails` gives the outcome and message of those that fail."""
    rows = []
    for harness in catalogue(primitive).values():
        for cell in cells.cells_of(harness):
            outcome, message = fails(harness.case, cell) or (Outcome.EQUAL, "")
            result = cells.judge(harness, cell, outcome, message)
            place = (harness.dtype_name, cell.mode, cell.target, cell.device, cell.variant)
            why = (result.verdict, 0.0, message, result.limitation, 0.1)
            rows.append(Row(harness.name, primitive, *place, outcome, *why))
    return rows


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of the limitations; returns a function that applies a diff and reads them again."""
    shutil.copytree(ROOT / "limitations", tmp_path / "limitations")
    shutil.copy(ROOT / "ruff.toml", tmp_path)

    def apply(proposed):
        text = update_limitations.diff(proposed, tmp_path)
        command = ["git", "apply", "--whitespace=error-all", "-"]
        subprocess.run(command, input=text, text=True, cwd=tmp_path, check=True)
        ruff = [sys.executable, "-m", "ruff"]
        for options in (["check"], ["format", "--check"]):
            subprocess.run([*ruff, *options, "--no-cache", "--quiet"], cwd=tmp_path, check=True)
        found = {}
        for path in (tmp_path / "limitations" / "primitives").glob("[a-z]*.py"):
            module = {}
            exec(path.read_text(), module)
            found.update(module["LIMITATIONS"])
        for module in (cells, proposals):
            monkeypatch.setattr(module, "limitations_of", lambda p: found.get(p, ()))
        return found

    return apply


def propose(rows, primitive, looser=()):
    return proposals.propose(rows, catalogue(primitive), lambda harness, cell: looser)


# One whose file is its own, one that shares limitations with others, one that has none, and one
# without a file for its family.
@pytest.mark.parametrize("primitive", ["cholesky", "sin", "sign", "sort"])
def test_the_diff_makes_unexpected_cells_limited(checkout, primitive):
    def fails(case, cell):
        if cell.mode == "graph" and case != "inf_float32":
            return Outcome.LOWERING_ERROR, REFUSED.replace("3,4", str(len(case)))
        if case.startswith("shape") and cell.target == "xla" and cell.mode == "eager":
            return Outcome.CRASH, "the process died of SIGABRT"
        return None

    before = all_limitations().get(primitive, ())
    rows = [row for row in rows_of(primitive, fails) if row.verdict != Verdict.STALE]
    proposed = propose(rows, primitive)
    found = checkout(proposed)
    assert len(found[primitive]) == len(before) + 2
    assert all("still to be written" in new.reason for new in found[primitive][:2])
    after = rows_of(primitive, fails)
    assert {row.verdict for row in after} <= {Verdict.EQUAL, Verdict.LIMITED, Verdict.STALE}
    failed = [row for row in after if row.outcome != Outcome.EQUAL]
    assert failed and all(row.verdict == Verdict.LIMITED for row in failed)
    others = {name for name in all_limitations() if name != primitive}
    assert all(len(found[name]) == len(all_limitations()[name]) for name in others)


def test_the_skeleton_of_a_new_primitive_is_filled(checkout, tmp_path):
    path = tmp_path / update_limitations.FILES / "sort.py"
    path.write_text(new_primitive.FILES["limitations/primitives"].format(name="sort"))

    def fails(case, cell):
        return (Outcome.CRASH, "the process died") if case == "domain_float32" else None

    (new,) = checkout(propose(rows_of("sort", fails), "sort"))["sort"]
    assert new.error and "Sequence[Limitation]" in path.read_text()


def test_different_results_get_the_looser_comparison_that_compares_most(checkout):
    def fails(case, cell):
        return (Outcome.DIFFERENT, "result 0") if case == "domain_float32" else None

    found = checkout(propose(rows_of("sort", fails), "sort", (Looser.NAN_REACHES, Looser.NEAR_ONE)))
    (new,) = found["sort"]
    assert new.looser == Looser.NEAR_ONE and new.modes == {"eager", "graph", "compiled"}
    assert new.where("domain_float32", {}) and not new.where("empty_float32", {})


def test_what_no_comparison_explains_is_no_limitation():
    rows = rows_of("sort", lambda *_: (Outcome.DIFFERENT, "result 0"))
    proposed = propose(rows, "sort")
    assert len(proposed["sort"].unexplained) == len(rows)
    assert update_limitations.diff(proposed) == ""


@pytest.fixture
def swept(monkeypatch):
    """A function that gives a primitive limitations, and returns results of some of its cells."""

    def swept(primitive, limitations, fails):
        for module in (cells, proposals):
            monkeypatch.setattr(module, "limitations_of", lambda p: limitations)
        return rows_of(primitive, fails)

    return swept


def test_stale_limitations_are_narrowed_or_removed(checkout, swept):
    """That of cholesky in the file is taken for others, of the same number."""
    old = {"error": "lowering error: refused", "targets": set(SWEPT)}
    limitations = [Limitation("Old.", **old, modes={"compiled", "graph"})]
    rows = swept(
        "cholesky",
        limitations,
        lambda case, cell: (
            (Outcome.LOWERING_ERROR, "refused")
            if cell.mode == "compiled" and "int" in case
            else None
        ),
    )
    (new,) = checkout(propose(rows, "cholesky"))["cholesky"]
    assert new.reason == all_limitations()["cholesky"][0].reason and new.looser is not None
    assert (new.modes, new.dtypes, new.variants) == ({"compiled"}, {"int8", "int16"}, ("plain",))
    assert new.where is None

    gone = [Limitation("Old.", **old, dtypes={"int8"})]
    proposed = propose(swept("cholesky", gone, lambda *_: None), "cholesky")
    assert "cholesky" not in checkout(proposed)


def test_a_shared_limitation_is_taken_from_one_primitive_alone(checkout, swept):
    one = Limitation("A.", error="TF error", targets={"tf"})
    rows = swept("sin", [one for _ in all_limitations()["sin"]], lambda *_: None)
    # The first covers the cells, so that the others cover none.
    found = checkout(propose(rows, "sin"))
    assert "sin" not in found
    assert [x.reason for x in found["cos"]] == [x.reason for x in all_limitations()["cos"]]


def test_cells_that_were_not_run_stay_limited(swept):
    limitations = [Limitation("Old.", error="lowering error", dtypes={"int8"}, variants=None)]
    rows = swept("sort", limitations, lambda *_: None)
    rows = [row for row in rows if row.mode == "eager"]
    ((narrower,), ()) = (propose(rows, "sort")["sort"].narrower, propose(rows, "sort")["sort"].new)
    left = {
        Cell("sort_" + case, mode, target, "cpu", variant)
        for place in narrower.places
        for case, mode, target, variant in itertools.product(
            place.cases, place.modes, place.targets, place.variants
        )
    }
    assert Cell("sort_shape=(3,)_int8", "graph", "xla", "cpu", "vmap") in left
    assert Cell("sort_shape=(3,)_int8", "eager", "onnx", "cpu") not in left
    assert Cell("sort_shape=(3,)_int8", "eager", "xla", "cpu") not in left


@given(st.sets(st.tuples(*[st.integers(0, 2)] * 3), min_size=1))
def test_boxes_are_exact_and_have_nothing_in_common(points):
    covered = [point for box in proposals.boxes(points) for point in itertools.product(*box)]
    assert len(covered) == len(points) and set(covered) == points


@given(st.text(st.characters(codec="ascii", exclude_characters="\n\r"), max_size=200))
def test_patterns_match_what_they_are_made_of(message):
    assert re.search(proposals.pattern("TF error", message), f"TF error: {message}", re.DOTALL)


def test_patterns_leave_open_what_varies():
    pattern = proposals.pattern("lowering error", REFUSED)
    other = REFUSED.replace("3,4", "7").replace("/home/a/model.py:33:8 (main)", "/b.py:1 (f)")
    assert re.search(pattern, f"lowering error: {other}")
    assert not re.search(pattern, f"lowering error: {REFUSED.replace('sine(', 'sort(')}")


def test_looser_comparisons_of_a_cell():
    harness = dataclasses.replace(Harness("sort", "case", np.sin), fun=lambda x: x)
    harness = dataclasses.replace(harness, args=(np.float32([1, np.inf]),))
    assert cells.looser_of(harness, Cell("sort_case", "eager", "tf")) == list(Looser)


def test_lines_end_as_python_and_git_have_them():
    """Form feeds and the separators of Unicode are no ends of lines in a diff."""
    text = "LIMITATIONS = {}  # A\fform feed, \u2028 and \x85.\nlast"
    assert update_limitations._lines(text) == [text[:-4], "last"]
    assert update_limitations._lines("") == []
