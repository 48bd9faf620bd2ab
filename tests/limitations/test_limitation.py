"""Limitations are data that match the properties of cells."""

import pathlib
import re

import pytest

import limitations
from limitations import Limitation, Looser, processors
from limitations.limitation import all_limitations

CELL = dict(
    case="case=0_int8",
    dtype="int8",
    params={"axis": 1},
    mode="graph",
    target="tf",
    device="cpu",
)


@pytest.mark.parametrize("stated", [{}, {"error": "TF error", "looser": Looser.NAN_REACHES}])
def test_either_an_error_or_a_looser_comparison_is_stated(stated):
    with pytest.raises(ValueError, match="either an error or a looser"):
        Limitation("It does not work.", **stated)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, True),
        ({"dtypes": {"int8"}, "modes": {"graph"}, "targets": {"tf"}, "devices": {"cpu"}}, True),
        ({"where": lambda case, params: case.startswith("case") and params["axis"] == 1}, True),
        ({"dtypes": {"int16"}}, False),
        ({"modes": {"eager", "compiled"}}, False),
        ({"targets": {"xla"}}, False),
        ({"devices": {"tpu"}}, False),
        ({"where": lambda case, params: params["axis"] == 0}, False),
    ],
)
def test_cells_that_are_covered(filters, expected):
    assert Limitation("It does not work.", error="TF error", **filters).covers(**CELL) == expected


@pytest.mark.parametrize("has_avx512", [True, False])
def test_cells_of_some_processors(has_avx512, monkeypatch):
    monkeypatch.setattr(processors, "has_avx512", lambda: has_avx512)
    for avx512 in (True, False):
        limitation = Limitation("It fails.", error="TF error", avx512=avx512)
        assert limitation.covers(**CELL) == (has_avx512 == avx512)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("TF error: .*no kernel", "TF error: … no kernel"),
        (r"^lowering error: .*(a list|a set)\.$", "lowering error: … a list or a set."),
        (r"TF error: .*x\(3\) of .* lacks y\|z", "TF error: … x(3) of … lacks y|z"),
        (None, None),
    ],
)
def test_errors_in_words(pattern, said):
    stated = {"error": pattern} if pattern else {"looser": Looser.MODERATE}
    assert Limitation("It does not work.", **stated).error_in_words == said


def test_readers_see_no_regular_expressions():
    for stated in all_limitations().values():
        for limitation in stated:
            assert not re.search(r"\\|\.\*|\(\?|^\^|\$$", limitation.error_in_words or "")


def test_the_package_imports_nothing_else_of_the_project():
    for path in pathlib.Path(limitations.__file__).parent.rglob("*.py"):
        imports = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert not {"harnesses", "lowering", "tools", "jax", "tensorflow"} & set(imports), path
