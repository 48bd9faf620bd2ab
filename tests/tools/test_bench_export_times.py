"""Exports to ONNX are timed beside those to TF Lite, and the figures are kept."""

import jax.numpy as jnp
import numpy as np
import pytest

from results import figures
from results.figures import Place
from tools import bench_export_times
from tools.bench_export_times import Program

pytest.importorskip("onnxruntime")


def test_figures_are_kept(tmp_path, monkeypatch):
    small = Program(lambda x: jnp.sin(x) * 2, (np.ones(3, np.float32),))
    monkeypatch.setattr(bench_export_times, "PROGRAMS", {"small": lambda: small})
    file = tmp_path / "results.sqlite"
    assert bench_export_times.main(["--repeats", "1", "--database", str(file)]) == 0
    found = figures.read(file)
    for figure in ("ONNX, time", "TF Lite, file", "time, ONNX / TF Lite", "file, ONNX / TF Lite"):
        assert found[Place("export of small", figure)][1].value > 0
