"""Failures of a sweep are grouped by cause."""

import pytest

from harnesses.cell import Outcome, Verdict
from tests.harnesses.rows import row
from tests.helpers import counts
from tools import failures, sweep


def bad(harness="sin_float32", verdict=Verdict.UNEXPECTED, **values):
    fields = {
        "primitive": harness.partition("_")[0],
        "dtype": "float32",
        "mode": "graph",
        "target": "tf",
        "device": "cpu",
        "outcome": "TF error",
        "message": "no kernel",
    }
    return row(harness, verdict, **{**fields, **values})


SAME = {
    "results": (
        "result 0 at [0, 1] is np.float32(nan), JAX gives np.float32(-1.5e-07)",
        "result 2 at [] is np.complex128(1-2j), JAX gives np.complex128(infj)",
        "result 1 at [7] is np.True_, JAX gives np.False_",
    ),
    "shapes": ("result 0 is float32[2, 3], not float64[]", "result 1 is int8[0], not bool[4, 4]"),
    "nodes": (
        "InvalidArgumentError: {{node a/b_1}} wants DT_HALF (2,3) of 0x7fab10",
        "InvalidArgumentError: {{node c}}   wants DT_BFLOAT16 (4,) of 0x12",
    ),
    "names": (
        "UnsupportedError: 'sin' of float16 at model.py:33 in __inference_f_12",
        "UnsupportedError: 'cos' of uint8 at model.py:7 in __inference_f_9",
    ),
    "own names": ("sin: sin_float32 is refused", "cos: cos_int8_2 is refused"),
}


@pytest.mark.parametrize("kind", SAME)
def test_details_make_no_other_cause(kind):
    names = ("sin_float32", "cos_int8_2", "tan_shape=(2,)")
    rows = [bad(name, message=message) for name, message in zip(names, SAME[kind], strict=False)]
    assert len(failures.grouped(rows)) == 1


def test_what_makes_another_cause():
    rows = [
        bad(),
        bad(message="no kernel for this"),
        bad(message="information is infinite"),
        bad(message="information is finite"),
        bad(outcome="lowering error"),
        bad(verdict=Verdict.STALE, outcome="equal", limitation="There is no kernel."),
        bad(verdict=Verdict.STALE, outcome="equal", limitation="There is no op."),
        row("sin_1", Verdict.EQUAL),
        row("sin_2", Verdict.LIMITED),
    ]
    assert len(failures.grouped(rows)) == 7


def test_the_most_frequent_cause_comes_first_with_the_quickest_cell(capsys):
    rows = [
        bad("cos_int8", message="rare"),
        *(bad(f"sin_{i}", message=f"frequent {i}", seconds=9.0 - i) for i in range(9)),
    ]
    sweep.print_report(sweep.Report(rows, unused=[], complete=True), verbose=False)
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("9 cells unexpected: TF error: frequent 8")
    assert lines[start + 1 :] == [
        "    sin_0, sin_1, sin_2, sin_3, sin_4, sin_5 and 3 more; graph on tf (cpu)",
        "    python -m tools.sweep --bisect sin_8 --mode graph --target tf",
        "1 cell unexpected: TF error: rare",
        "    cos_int8; graph on tf (cpu)",
        "    python -m tools.sweep --bisect cos_int8 --mode graph --target tf",
        counts(10, bad=10),
    ]


def test_so_many_causes_are_counted():
    rows = [bad(message="x" * i) for i in range(1, 31)]
    *_, last = failures.lines(rows)
    assert last == "... and 5 cells of 5 other causes; the database has them all"


@pytest.mark.parametrize(
    ("values", "arguments"),
    [
        ({}, "--bisect sin_float32 --mode graph --target tf"),
        (
            {"harness": "sin_shape=(2, 3)", "device": "gpu", "variant": "symbolic axes"},
            "--bisect 'sin_shape=(2, 3)' --mode graph --target tf --device gpu "
            "--variant 'symbolic axes'",
        ),
        (
            {"outcome": str(Outcome.HARNESS_ERROR)},
            "--primitive sin --dtype float32 --mode graph --target tf --variants none",
        ),
        (
            {"verdict": Verdict.STALE, "outcome": "equal", "variant": "vmap"},
            "--primitive sin --dtype float32 --mode graph --target tf --variant vmap",
        ),
    ],
)
def test_reproducers(values, arguments):
    assert failures.reproducer(bad(**values)) == f"python -m tools.sweep {arguments}"
