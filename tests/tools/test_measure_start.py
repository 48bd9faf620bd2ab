"""The start of a process is timed in processes of its own, and what it takes is kept."""

from results import figures
from results.figures import Place
from tools import measure_start


def test_figures_are_kept(tmp_path):
    file = tmp_path / "results.sqlite"
    assert measure_start.main(["--repeats", "1", "--database", str(file)]) == 0
    found = figures.read(file)
    program = "start of a process"
    for figure in ("import of lowering", "second conversion"):
        assert found[Place(program, figure)][1].value > 0
    assert found[Place(program, "eager call of two layers / tf.function")][1].value > 0
