"""Conversions are timed, and their times are kept."""

from results import figures
from results.figures import Place
from tools import measure_conversion


def test_times_are_kept(tmp_path):
    file = tmp_path / "results.sqlite"
    assert measure_conversion.main(["--largest", "100", "--database", str(file)]) == 0
    found = figures.read(file)
    for figure in ("JAX's tracing", "conversion", "as many ops in TensorFlow"):
        assert found[Place("100 equations", f"{figure}, time")][1].value > 0
    assert Place("100 nested calls", "conversion, time") in found
