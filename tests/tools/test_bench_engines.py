"""Engines are compared on the same cells, by the time from the first result to the last."""

import numpy as np
import pytest

from harnesses.cell import SWEPT
from harnesses.harness import Harness
from harnesses.selection import Selection
from tests.harnesses.engines import EqualEngine
from tools import bench_engines

HARNESSES = 4
CELLS = HARNESSES * len(SWEPT)  # In graph mode.


def catalogue():
    args = (np.zeros(3, np.float32),)
    harnesses = [Harness("sin", str(i), np.sin, args) for i in range(HARNESSES)]
    return {harness.name: harness for harness in harnesses}


def test_start_up_is_told_but_does_not_count():
    engines = {"local": lambda: EqualEngine(0, 0.05), "ray": lambda: EqualEngine(0.3, 0.1)}
    selection = Selection(modes=("graph",), share="none", per_harness="all")
    found = bench_engines.compare(engines, selection, 2, catalogue)
    assert {measured.cells for measured in found.values()} == {CELLS}
    assert found["ray"].whole > found["ray"].running + 0.3
    assert 0.3 < bench_engines.efficiency(found["local"], found["ray"]) < 0.8


def test_the_command(monkeypatch, capfd):
    monkeypatch.setattr(bench_engines, "LocalEngine", lambda workers: EqualEngine(0, 0.01))
    monkeypatch.setattr(bench_engines, "RayEngine", lambda address, workers: EqualEngine(0, 0.05))
    argv = ["--primitive=sin", "--workers=3"]
    assert bench_engines.main(argv, catalogue) == 0
    assert bench_engines.main([*argv, "--least=0.9"], catalogue) == 1
    output = capfd.readouterr().out
    assert f"ray    {CELLS} cells in" in output and "efficiency of Ray with 3 workers: 0." in output
    first = dict(list(catalogue().items())[:1])
    assert bench_engines.main(argv, lambda: first) == 2
    assert "there is only one; select more" in capfd.readouterr().err
    assert bench_engines.main(["--primitive=sun"], catalogue) == 2
    assert "no harness has the primitive 'sun'" in capfd.readouterr().err


@pytest.mark.parametrize("argv", [["--workers=0"], ["--rounds=0"], ["--workers=two"]])
def test_options_that_make_no_sense(argv, capsys):
    with pytest.raises(SystemExit) as error:
        bench_engines.main(argv)
    assert error.value.code == 2
    assert "error:" in capsys.readouterr().err
