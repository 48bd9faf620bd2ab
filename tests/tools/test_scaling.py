"""The simulation of a cluster obeys what limits one."""

import pytest

from tests.tools.synthetic import cell, write
from tools import scaling


@pytest.mark.parametrize("workers", scaling.WORKERS)
def test_no_sweep_is_faster_than_its_work_allows(workers):
    times = [0.1 + i % 7 / 10 for i in range(5000)]
    simulated = scaling.simulate(times, workers)
    least = max(sum(times) / workers, max(times), len(times) * scaling.TAKE)
    assert least <= simulated.seconds <= 1.5 * least + scaling.START + 3
    assert 0 < simulated.working <= 1
    assert 0 < simulated.taking <= 1


def test_the_longest_task_is_begun_first():
    simulated = scaling.simulate([0.1] * 1000 + [100.0], 50)
    assert simulated.seconds == pytest.approx(scaling.START + 100, rel=0.01)


def test_tasks_are_the_cells_of_a_harness_and_variant(tmp_path):
    rows = [
        cell("sin_a", seconds=1.0),
        cell("sin_a", mode="graph", seconds=2.0),
        cell("sin_a", variant="vmap", seconds=4.0),
    ]
    path = write(tmp_path / "sweep.sqlite", rows)
    write(path, [cell("sin_b")], selection={})
    expected = {("sin_a", "vmap"): 4.0, ("sin_a", "plain"): 3.0}
    found, cells = scaling.tasks(path)
    assert list(found.items()) == list(expected.items())
    assert cells == 3


def test_documents(tmp_path, monkeypatch, capsys):
    (tmp_path / "templates").symlink_to(scaling.G3DOC / "templates")
    monkeypatch.setattr(scaling, "G3DOC", tmp_path)
    path = write(tmp_path / "s.sqlite", [cell(f"sin_{i}", seconds=1.0) for i in range(50)])
    assert scaling.main([str(path)]) == 0
    assert "| 1,000 |" in (tmp_path / "scaling.md").read_text()
    assert "<polyline" in (tmp_path / "scaling.svg").read_text()
    assert scaling.main([str(tmp_path / "missing.sqlite")]) == 2
    assert "has no results" in capsys.readouterr().err


def test_results_without_times(tmp_path, capsys):
    path = write(tmp_path / "sweep.sqlite", [cell("sin_1", seconds=0.0)])
    assert scaling.main([str(path)]) == 2
    assert "has no times of cells" in capsys.readouterr().err
