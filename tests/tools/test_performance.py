"""Figures of benches become tables of the page on performance."""

import json

import numpy as np
import pytest

from results.figures import Bench, Measured, Place
from tools import performance

BENCH = Bench("python -m tools.bench --model lstm", "a processor, 2 CPUs", {"jax": "1"}, "2026")


def test_the_page_is_up_to_date():
    assert performance.main(["--check"]) == 0


def test_tables():
    found = {
        Place("lstm", "jax.jit"): (BENCH, Measured(5.0, 4.0, 6.0, "ms")),
        Place("lstm", "nodes"): (BENCH, Measured(7.0, 7.0, 7.0, "nodes")),
    }
    lines = performance.tables(found).splitlines()
    assert lines[0] == "a processor, 2 CPUs; jax 1."
    assert lines[2] == f"`{BENCH.command}`"
    assert "| lstm | jax.jit | 5 ms | 4 to 6 |" in lines
    assert "| lstm | nodes | 7 nodes | – |" in lines


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(performance, "PICTURES", {" / Keras": (tmp_path / "drawn.svg", "Faster?")})
    curves = performance.Curves("time, by MB", " MB", ", time", " s")
    plot = "How long does it take?", [curves]
    monkeypatch.setattr(performance, "PLOTS", {tmp_path / "plot.svg": plot})
    for name in ("PAGE", "RECORDED"):
        monkeypatch.setattr(performance, name, tmp_path / name)
    performance.PAGE.write_text("before\n{}\nold\n{}\nafter\n".format(*performance.MARKS))
    performance.RECORDED.write_text("[]")
    return performance.PAGE


def test_a_database_replaces_what_it_has(page, tmp_path):
    file = tmp_path / "results.sqlite"
    with performance.recording(file, "first") as record:
        record("lstm", "jax.jit", performance.measured(np.array([1.0, 2.0, 3.0]), "ms"))
        record("lstm", "ratio", performance.measured(np.array([1.0])))
        record("lstm", "reason", "is not converted")
    assert performance.main(["--database", str(file)]) == 0
    with performance.recording(file, "second") as record:
        record("lstm", "ratio", Measured(2.0, 2.0, 2.0))
    assert performance.main(["--database", str(file)]) == 0
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "`first`" in text and "2 ms | 1.5 to 2.5 |" in text
    assert "`second`" in text and "| 2 | – |" in text
    assert len(json.loads(performance.RECORDED.read_text())) == 2
    assert performance.main(["--check"]) == 0


def test_ratios_are_drawn(page, tmp_path):
    file = tmp_path / "results.sqlite"
    with performance.recording(file, "command") as record:
        record("lstm, graphs", "graph, tf / Keras", Measured(0.9, 0.8, 1.5))
        record("lstm", "TF Lite, file, lowering / Keras", Measured(0.5, 0.5, 0.5))
    performance.main(["--database", str(file)])
    text = (tmp_path / "drawn.svg").read_text()
    assert "lstm: graph, tf</text>" in text and "0.90" in text and "0.50" not in text


def test_nothing_is_kept_without_a_file(tmp_path):
    with performance.recording(None, "") as record:
        record("lstm", "ratio", Measured(2.0, 2.0, 2.0))
    file = tmp_path / "results.sqlite"
    with performance.recording(file, "") as record:
        record("lstm", "reason", "is not converted")
    assert not file.exists()


def test_where_it_was_measured():
    assert performance.machine().endswith("CPUs")
    assert {"python", "jax"} <= performance.versions().keys()


def test_curves_are_drawn(page, tmp_path):
    file = tmp_path / "results.sqlite"
    with performance.recording(file, "command") as record:
        for size in (100, 20, 1_000):
            record(f"{size:,} MB", "tflite, time", Measured(size, size, size, "s"))
    assert performance.main(["--database", str(file)]) == 0
    drawn = (tmp_path / "plot.svg").read_text()
    assert "How long does it take?" in drawn and "time, by MB" in drawn and "tflite" in drawn
    assert drawn.count("<circle") == 3 and "1e+03 s" in drawn
