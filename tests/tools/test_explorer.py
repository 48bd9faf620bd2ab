"""The page to explore results with has all results, and no more than it needs."""

import dataclasses
import random
import re
import string

import pytest

from harnesses.cell import Verdict
from tests.tools.synthetic import VERSIONS, cell, many, write
from tools import explorer

OTHER = dataclasses.replace(VERSIONS, jax="2.0")


def cells_of(data: dict) -> list[dict]:
    """The cells of a page by the names of what they have."""
    found, harness = [], 0
    columns = data["cells"]
    for i, step in enumerate(columns["harness"]):
        harness += step
        primitive, case, dtype = data["harnesses"][harness]
        version, *place = data["places"][columns["place"][i]]
        outcome, verdict = data["results"][columns["result"][i]]
        found.append(
            {
                "primitive": data["primitives"][primitive],
                "case": case,
                "dtype": data["dtypes"][dtype],
                "version": data["versions"][version],
                "place": place,
                "outcome": outcome,
                "verdict": verdict,
                "limitation": data["limitations"][columns["limitation"][i]],
                "message": data["messages"][columns["message"][i]],
                "ulps": columns["ulps"][i],
                "seconds": columns["seconds"][i] / 1000,
            }
        )
    return found


def test_all_cells_are_in_the_page(tmp_path):
    infinite = {"ulps": float("inf"), "message": "is <b>"}
    rows = [
        cell("sin_a", ulps=1.26, message="is 1, JAX gives 2", seconds=0.25),
        cell("sin_b", Verdict.LIMITED, limitation="No kernel.", **infinite),
        cell("exp_c", Verdict.UNEXPECTED, primitive="exp", dtype="int8", mode="graph"),
    ]
    path = write(tmp_path / "sweep.sqlite", rows)
    write(path, [cell("sin_a")], OTHER)
    c, a, again, b = cells_of(explorer.data_in(explorer.page(path)))
    assert (c["primitive"], c["dtype"]) == ("exp", "int8")
    assert c["place"] == ["graph", "tf", "cpu", "plain"]
    assert (a["case"], a["ulps"], a["seconds"], a["message"]) == ("a", 1.3, 0.25, "")
    assert (a["version"], again["version"]) == (str(VERSIONS), str(OTHER))
    assert (b["limitation"], b["message"], b["ulps"]) == ("No kernel.", "is <b>", -1)


def test_the_latest_sweep_of_a_cell_counts(tmp_path):
    path = write(tmp_path / "sweep.sqlite", [cell("sin_a", Verdict.UNEXPECTED)])
    write(path, [cell("sin_a")], selection={"primitives": ["sin"]})
    (a,) = cells_of(explorer.data_in(explorer.page(path)))
    assert a["outcome"] == "equal"


def test_nothing_of_the_results_is_markup(tmp_path):
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    row = cell(f"sin_{bad}", Verdict.UNEXPECTED, primitive="sin", dtype=bad, message=bad)
    page = explorer.page(write(tmp_path / "sweep.sqlite", [row]))
    assert "alert(" not in page
    (a,) = cells_of(explorer.data_in(page))
    assert (a["case"], a["dtype"], a["message"]) == (bad, bad, bad)


def test_the_page_needs_no_network(tmp_path):
    page = explorer.page(write(tmp_path / "sweep.sqlite", [cell("sin_a")]))
    assert not re.findall(r"https?://|\bsrc=|@import|url\(", page)
    assert "default-src 'none'" in page


def test_the_same_results_give_the_same_page(tmp_path):
    path = write(tmp_path / "sweep.sqlite", many(500))
    assert explorer.page(path) == explorer.page(path)


def test_a_hundred_thousand_cells_are_less_than_two_megabytes(tmp_path):
    page = explorer.page(write(tmp_path / "sweep.sqlite", many(100_000)))
    assert len(page) < 2e6


def test_messages_are_cut_until_the_page_is_small_enough(tmp_path):
    letters = random.Random(0).choices(string.ascii_letters, k=600 * 300)
    rows = [
        cell(f"sin_{i}", Verdict.UNEXPECTED, message="".join(letters[600 * i : 600 * (i + 1)]))
        for i in range(300)
    ]
    path = write(tmp_path / "sweep.sqlite", rows)
    whole = explorer.page(path)
    count = len(whole.encode())
    assert explorer.page(path, count) == whole
    sizes = [len(explorer.page(path, size).encode()) for size in (count - 1, count - 130_000)]
    assert sizes[0] < count and sizes[1] < count - 130_000
    with pytest.raises(ValueError, match="more than 1,000 bytes even without messages"):
        explorer.page(path, 1000)


def test_rules_are_the_statements_that_name_a_primitive():
    found = explorer.rules(["sin", "gather", "sort", "nothing"])
    texts = {p: [found["sources"][n] for n in numbers] for p, numbers in found["rules"].items()}
    assert "nothing" not in texts
    assert any("@rule(" in text and "def gather" in text for _, text in texts["gather"])
    assert all(place.startswith("lowering/rules/") for place, _ in texts["sin"])


def test_rules_of_a_directory(tmp_path):
    rule = '@rule("sin", traits=3)\ndef sin(ctx, x):\n    return "cos"'
    directory = tmp_path / "lowering" / "rules"
    directory.mkdir(parents=True)
    (directory / "trigonometry.py").write_text(
        f'"""Rules of sin and cos."""\n\n{rule}\n\n\n_OPS = "sin cos tan".split()\nops(_OPS)\n'
    )
    found = explorer.rules(["sin", "cos"], tmp_path)
    assert found["sources"] == [
        ("lowering/rules/trigonometry.py, line 3", rule),
        ("lowering/rules/trigonometry.py, line 8", '_OPS = "sin cos tan".split()'),
        ("lowering/rules/trigonometry.py, line 9", "ops(_OPS)"),
    ]
    assert found["rules"] == {"sin": [0, 1, 2], "cos": [1, 2]}


def test_dtypes_are_ordered_by_kind_and_size():
    dtypes = "key<fry> float8_e5m2 complex64 float32 bfloat16 int4 uint8 int16 int8 bool".split()
    expected = "bool int8 int16 uint8 bfloat16 float32 complex64 int4 float8_e5m2 key<fry>"
    assert sorted(dtypes, key=explorer._dtype_order) == expected.split()


def test_the_command(tmp_path, capsys):
    path, page = write(tmp_path / "sweep.sqlite", [cell("sin_a")]), tmp_path / "page.html"
    assert explorer.main([str(path), "--output", str(page)]) == 0
    assert cells_of(explorer.data_in(page.read_text()))
    assert explorer.main([str(tmp_path / "no.sqlite"), "--output", str(tmp_path / "no.html")]) == 2
    assert "has no results" in capsys.readouterr().err
    assert not (tmp_path / "no.html").exists()


@pytest.mark.parametrize("rows", [[], [cell("sin_a", Verdict.NO_VARIANT, variant="vmap")]])
def test_results_of_next_to_nothing(rows, tmp_path):
    path = write(tmp_path / "sweep.sqlite", rows)
    if rows:
        assert cells_of(explorer.data_in(explorer.page(path)))
    else:
        assert explorer.main([str(path), "--output", str(tmp_path / "page.html")]) == 2


def test_a_page_that_cannot_be_written(tmp_path, capsys):
    path = write(tmp_path / "sweep.sqlite", many(10))
    assert explorer.main([str(path), "--output", str(tmp_path / "missing" / "page.html")]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert (
        error == f"error: {tmp_path}/missing/page.html cannot be written: No such file or directory"
    )
