"""How results of cells are compared, and what a limitation tolerates instead."""

import numpy as np
import pytest

from harnesses import cell, compare
from harnesses.cell import Cell, Outcome, Verdict
from harnesses.harness import Harness
from limitations import Limitation, Looser

NAN = np.float32([1, np.nan])


def test_every_looser_comparison_has_a_comparer():
    assert set(compare.LOOSER) == set(Looser)


@pytest.mark.parametrize(
    ("actual", "outcome", "verdict"),
    [
        ([NAN], Outcome.EQUAL, Verdict.STALE),
        ([np.float32([np.nan, np.nan])], Outcome.DIFFERENT, Verdict.LIMITED),
        ([np.float32([2, np.inf])], Outcome.DIFFERENT, Verdict.LIMITED),
        ([np.float32([1, 2])], Outcome.DIFFERENT, Verdict.UNEXPECTED),
        ([np.float64([np.nan, np.nan])], Outcome.DIFFERENT, Verdict.UNEXPECTED),
        ([NAN, NAN], Outcome.DIFFERENT, Verdict.UNEXPECTED),
        (None, Outcome.TF_ERROR, Verdict.UNEXPECTED),
    ],
)
def test_a_looser_limitation_is_strict(actual, outcome, verdict, monkeypatch):
    limitation = Limitation("A NaN spreads.", looser=Looser.NAN_REACHES)
    monkeypatch.setattr(cell, "limitations_of", lambda primitive: (limitation,))
    harness = Harness("sin", "case", np.sin, (NAN,))
    values = ([NAN], actual, [NAN])
    result = cell.judge(harness, Cell(harness.name, "eager", "tf"), outcome, values=values)
    assert result.verdict == verdict
