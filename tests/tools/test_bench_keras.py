"""The bench beside Keras, for one turn of a small model."""

import numpy as np
import pytest

from tools import bench, bench_keras, in_keras


def test_report(monkeypatch):
    monkeypatch.setattr(bench, "_TURN_SECONDS", 0)
    rows = dict(bench_keras.report("cnn", 1, bench.CLOCKS["processor"]))
    assert list(rows) == ["Keras", "graph, portable / Keras", "graph, tf / Keras"]
    assert all(np.isfinite(row.value) and row.value > 0 for row in rows.values())


def test_models_of_other_sizes():
    with pytest.raises(ValueError, match="lstm has inputs of"):
        bench_keras._program("lstm", in_keras.cnn())
