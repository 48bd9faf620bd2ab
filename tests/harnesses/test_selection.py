"""Filters select cells, or say why they select nothing."""

import pytest

from harnesses.harness import Harness
from harnesses.sweep import Selection, SelectionError
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
