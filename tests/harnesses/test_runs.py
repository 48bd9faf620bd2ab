"""Runs of equal graphs on equal arguments share their results."""

import resource
import signal

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from harnesses import cell
from harnesses.cell import Verdict
from harnesses.harness import Harness
from harnesses.runs import RunsInDirectory, RunsInMemory, key_of
from lowering.export import runtimes


@pytest.mark.parametrize("kept", [False, True])
def test_targets_share_the_run_of_a_graph_with_loops(kept, tmp_path, monkeypatch):
    harness = Harness("eig", "eigvals", jnp.linalg.eigvals, (np.eye(3, dtype=np.float32),))

    def runs():
        return RunsInDirectory(tmp_path / "runs") if kept else RunsInMemory()

    made = []
    keep = type(runs()).keep
    monkeypatch.setattr(type(runs()), "keep", lambda *args: (made.append(args), keep(*args)))
    # These two have the same graph of it.
    cells = cell.cells_of(harness, modes=["graph"], targets=["tf", "xla"])
    for result in cell.run(harness, cells, runs()):
        assert result.verdict == Verdict.EQUAL, result
    assert len(made) == 1
    for result in cell.run(harness, cells, runs()):
        assert result.verdict == Verdict.EQUAL, result
    assert len(made) == (1 if kept else 2)


@pytest.mark.parametrize("consumer", ["tflite", "onnx", "tfjs"])
def test_versions_of_jax_share_the_runs_of_consumers(consumer, tmp_path, monkeypatch):
    made = []
    run = runtimes.run
    monkeypatch.setattr(runtimes, "run", lambda *args: (made.append(args), run(*args))[1])

    def swept(fun, dtype):
        harness = Harness("neg", "neg", fun, (np.arange(3).astype(dtype),))
        cells = cell.cells_of(harness, modes=["runtime"], targets=[consumer])
        for result in cell.run(harness, cells, RunsInDirectory(tmp_path / "runs")):
            assert result.verdict == Verdict.EQUAL, result

    swept(lambda x: -x, np.complex64)
    swept(lambda x: -x, np.complex64)
    assert len(made) == 1
    swept(lambda x: -x, np.float16)
    swept(lambda x: x.conj(), np.complex64)
    assert len(made) == 3


def test_a_damaged_result_is_as_good_as_none(tmp_path):
    runs = RunsInDirectory(tmp_path)
    runs.keep("key", [np.arange(3)])
    whole = (tmp_path / "key").read_bytes()
    for damaged in (whole[:-9], whole[:5], b"", whole.replace(b"numpy", b"numpx")):
        (tmp_path / "key").write_bytes(damaged)
        assert runs.get("key") is None
    runs.keep("key", [np.arange(3)])
    assert runs.get("key")[0].tolist() == [0, 1, 2]


def test_what_cannot_be_written_is_not_kept(tmp_path):
    runs = RunsInDirectory(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    usual = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        runs.keep("key", [np.arange(1000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, usual)
    assert runs.get("key") is None
    assert not list(tmp_path.iterdir())


def _key(fun, x, mode="graph"):
    concrete = tf.function(fun).get_concrete_function(x)
    return key_of(concrete.graph.as_graph_def(), [x.numpy()], mode)


def test_runs_are_told_apart_by_graph_arguments_and_circumstances():
    x = tf.constant([1.0, 2.0])
    keys = [
        _key(tf.sin, x),
        _key(tf.cos, x),
        _key(lambda x: tf.sin(x) + 1.0, x),
        _key(lambda x: tf.sin(x) + 2.0, x),
        _key(lambda x: tf.cond(x[0] > 0, lambda: tf.sin(x), lambda: x), x),
        _key(lambda x: tf.cond(x[0] > 0, lambda: tf.cos(x), lambda: x), x),
        _key(tf.sin, tf.constant([1.0, 3.0])),
        _key(tf.sin, x, "compiled"),
    ]
    assert len(set(keys)) == len(keys)
    assert _key(tf.sin, x) == keys[0]
