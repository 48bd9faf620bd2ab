"""Filters select cells, or say why they select nothing."""

import collections
import itertools

import jax
import numpy as np
import pytest

from harnesses.cell import MODES, SWEPT
from harnesses.harness import Harness, all_harnesses
from harnesses.selection import CONSUMER_DTYPES, Selection, SelectionError
from harnesses.times import Times
from harnesses.variants import PLAIN, SETTINGS
from lowering.targets import CONSUMERS
from tools import sweep

HARNESSES = {
    harness.name: harness
    for harness in (
        Harness("sin", "float32", None, dtype="float32"),
        Harness("sin", "float64", None, dtype="float64"),
        Harness("sort", "int8", None, dtype="int8"),
    )
}


def test_selection():
    assert list(Selection().cells(HARNESSES)) == list(HARNESSES)
    selection = Selection(primitives=("si*",), dtypes=("float32",), modes=("graph",))
    selected = selection.cells(HARNESSES)
    assert list(selected) == ["sin_float32"]
    assert {cell.mode for cell in selected["sin_float32"]} == {"graph"}


def test_half_of_the_harnesses_of_each_primitive_and_dtype():
    harnesses = {
        h.name: h
        for h in (
            Harness("sin", f"{d} {i}", None, dtype=d) for i in range(4) for d in ("int8", "bool")
        )
    } | HARNESSES
    seen = set()
    for turn in map(str, range(20)):
        cells = Selection(per_harness="half").cells(harnesses, turn)
        plain = {n for n, of in cells.items() if any(c.variant == PLAIN for c in of)}
        assert len(plain) == 2 + 2 + len(HARNESSES)
        assert set(HARNESSES) <= plain
        seen |= plain
    assert seen == set(harnesses)


def test_one_mode_on_one_target_differs_from_turn_to_turn():
    seen = set()
    for turn in map(str, range(100)):
        for of_harness in Selection(per_harness="one").cells(HARNESSES, turn).values():
            (plain,) = [c for c in of_harness if c.variant == PLAIN]
            seen.add(plain)
            by_variant = collections.Counter(c.variant for c in of_harness)
            assert set(by_variant.values()) == {1}
    assert len(seen) == len(HARNESSES) * len(MODES) * len(SWEPT)


def _no_arguments(rng):
    raise ValueError("no arguments")


def test_a_harness_that_cannot_make_its_arguments_has_no_variants():
    bad = Harness("sin", "bad", np.sin, (_no_arguments,), dtype=np.float32)
    selected = Selection(share="all").cells({**HARNESSES, bad.name: bad})
    assert {c.variant for c in selected[bad.name]} <= {PLAIN, *SETTINGS}
    assert PLAIN in {c.variant for c in selected[bad.name]}


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


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], ("one", sweep.SECONDS)),
        (["--seconds=8"], ("one", 8)),
        (["--full"], ("all", None)),
        (["--per-harness=one"], ("one", None)),
        (["--primitive=sin"], ("all", None)),
        (["--dtype=int8", "--per-harness=half"], ("half", None)),
    ],
)
def test_a_sweep_of_what_is_selected_runs_all_of_it(argv, expected, tmp_path, monkeypatch):
    selected = []

    def record(selection, *args, **kwargs):
        selected.append((selection.per_harness, selection.seconds))
        raise SelectionError("enough")

    monkeypatch.setattr(sweep, "sweep", record)
    sweep.main([*argv, "--database", str(tmp_path / "sweep.sqlite")], catalogue=lambda: HARNESSES)
    assert selected == [expected]


def test_consumers_turn_with_half_of_the_harnesses_of_core_dtypes():
    names = ["abs_first", "abs_second"]
    added = {name: Harness("abs", name[4:], None, dtype="float32") for name in names}
    seen = set()
    for turn in map(str, range(100)):
        selected = Selection(with_consumers=True).cells(HARNESSES | added, turn)
        by_runtimes = {n: [c for c in of if c.mode == "runtime"] for n, of in selected.items()}
        assert not by_runtimes["sin_float64"] + by_runtimes["sort_int8"]
        # No limitation covers absolute values; one covers the sines of TF Lite, which always run.
        (cell,) = (c for name in names for c in by_runtimes[name])
        seen.add((cell.harness, cell.target))
        assert "tflite" in {c.target for c in by_runtimes["sin_float32"]}
    assert seen == set(itertools.product(names, ("tflite", "onnx", "tfjs")))


def test_consumers_run_what_dtypes_a_primitive_has():
    selected = Selection.of_consumers(primitives=("sin",)).cells(HARNESSES)
    found = {(cell.harness, cell.target) for cells in selected.values() for cell in cells}
    assert {target for harness, target in found if harness == "sin_float32"} == set(CONSUMERS)
    # The others have no more than 32 bits.
    assert {target for harness, target in found if harness == "sin_float64"} == {"onnx"}
    with pytest.raises(SelectionError, match="no harness has the dtype 'int16'"):
        Selection.of_consumers(("int16", "float32"), ("sin",)).cells(HARNESSES)


def test_no_harness_is_of_a_dtype_that_sweeps_of_consumers_leave_out():
    with jax.enable_x64(True):
        dtypes = {harness.dtype_name for harness in all_harnesses().values()}
    assert dtypes == set(CONSUMER_DTYPES)


def test_selection_of_consumers():
    selected = Selection.of_consumers(("float32",)).cells(HARNESSES)
    (cells,) = selected.values()
    assert {(c.target, c.mode) for c in cells} == {
        (target, "runtime") for target in ("tflite", "onnx", "tfjs")
    }


def _of_one_primitive(count):
    return {h.name: h for h in (Harness("abs", str(i), None, dtype="int8") for i in range(count))}


def test_a_sample_takes_its_time_and_has_each_primitive():
    harnesses = _of_one_primitive(12) | HARNESSES
    times = Times({"abs": {"": 0.5}, "sort": {"": 60.0}})
    seen = set()
    for turn in map(str, range(30)):
        cells = Selection(seconds=2.0, share="none").cells(harnesses, turn, times)
        taken = {name for name, of in cells.items() if of}
        assert len([name for name in taken if name.startswith("abs")]) == 4
        assert "sort_int8" in taken
        assert {name.split("_")[0] for name in taken} == {"abs", "sin", "sort"}
        seen |= taken
    assert seen == set(harnesses)


def test_time_that_a_long_cell_does_not_fit_in_is_left_to_short_ones():
    harnesses = _of_one_primitive(20)
    times = Times({"abs": {"eager": 0.1, "graph": 0.1, "compiled": 10.0}})
    for turn in map(str, range(20)):
        cells = [
            c for of in Selection(seconds=1.0).cells(harnesses, turn, times).values() for c in of
        ]
        plain = [c for c in cells if c.variant == PLAIN]
        assert sum(c.mode == "compiled" for c in plain) <= 1
        assert len(plain) >= 5 or plain[0].mode == "compiled"


def test_whole_primitives_beside_a_sample():
    harnesses = _of_one_primitive(9) | HARNESSES
    times = Times({"": {"": 10.0}})
    selection = Selection(seconds=1.0, with_consumers=True, share="none", whole=("ab*", "tan"))
    cells = selection.cells(harnesses, "turn", times)
    everywhere = {(c.target, c.mode) for c in cells["abs_3"]}
    assert everywhere == {
        *itertools.product(SWEPT, MODES),
        *itertools.product(CONSUMERS, ["runtime"]),
    }
    assert len(cells["sort_int8"]) == 1
    with pytest.raises(SelectionError, match="no harness has the primitive 'tan'"):
        Selection(whole=("tan",)).cells(harnesses)


def test_fields_that_limit_nothing_are_not_in_data():
    assert not {"seconds", "whole"} & Selection().as_data().keys()
    assert Selection(seconds=2.0, whole=("b", "a")).as_data()["whole"] == ["a", "b"]
