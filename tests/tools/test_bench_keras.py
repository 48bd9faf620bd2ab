"""The bench beside Keras, for one turn of a small model."""

import jax
import numpy as np
import pytest
import tensorflow as tf

from tools import bench, bench_keras, in_keras


@pytest.mark.parametrize("name", ["cnn", "cnn_gradient", "vae"])
def test_report(name, monkeypatch):
    monkeypatch.setattr(bench, "_TURN_SECONDS", 0)
    rows = dict(bench_keras.report(name, 1, bench.CLOCKS["processor"]))
    assert list(rows) == ["Keras", "graph, portable / Keras", "graph, tf / Keras"]
    assert all(np.isfinite(row.value) and row.value > 0 for row in rows.values())


def test_models_of_other_sizes():
    with pytest.raises(ValueError, match="lstm has inputs of"):
        bench_keras._check_sizes("lstm", in_keras.cnn(), bench_keras.case("lstm"))


@pytest.mark.parametrize("name", ["gpt_step", "graph_network"])
def test_results_have_the_same_shapes(name):
    """What takes several arguments is no model of layers that are joined, so nothing checks it."""
    case = bench_keras.case(name)
    of_keras = in_keras.GRAPHS[name]()(*jax.tree.map(tf.constant, case.args), training=False)
    ours = jax.eval_shape(case.fun, case.params, *case.args)
    shapes = [[tuple(x.shape) for x in jax.tree.leaves(results)] for results in (of_keras, ours)]
    assert shapes[0] == shapes[1]
