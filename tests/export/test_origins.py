"""Ops, and what converters refuse, are traced back to lines of the user's program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export
from lowering.errors import UnsupportedError
from lowering.export import entries, listing, onnx, origins, tflite_converter
from lowering.export.tfjs import graph_model
from lowering.targets import TARGETS

X = np.linspace(0.1, 1, 9, dtype=np.float32).reshape(3, 3)
KEY = np.uint32([0, 1])


def program(x, key):
    """Primitives that this package decomposes or fuses, and functions that JAX compiles."""

    def step(carry, row):
        return jnp.tanh(carry) + row, jax.nn.softmax(carry)

    symmetric = x + x.T
    return [
        jax.nn.softmax(x),
        jax.nn.gelu(x),
        jax.nn.logsumexp(x),
        jnp.linalg.eigh(symmetric)[0],
        jnp.median(x, 0),
        jnp.cumsum(x, 0),
        jnp.searchsorted(x[0], x[1]),
        jax.lax.top_k(x, 2),
        jax.lax.scan(step, x[0], x),
        jax.lax.while_loop(lambda x: x.sum() < 9, lambda x: jax.nn.relu(x) * 2, x),
        jax.lax.reduce(x, np.float32(0), lambda a, b: jnp.maximum(a, b * 2), (0,)),
        jax.scipy.special.gammaln(x),
        jax.random.normal(jax.random.wrap_key_data(key), (3,)),
        x.at[0].add(1.0)[::2],
        x**3,
        jax.grad(lambda x: jax.nn.softmax(x).max())(x),
        jax.image.resize(x, (5, 5), "bilinear"),
    ]


@pytest.mark.parametrize("target", ["tf", "tflite"])
def test_every_op_comes_from_a_line_of_the_program(target):
    rows = listing.lines(entries.entry(program, (X, KEY), TARGETS[target]))
    strange = {
        (row.op, row.primitive, row.source)
        for row in rows
        # Inputs and outputs are of no primitive.
        if row.primitive and not row.source.startswith(f"{__file__}:")
    }
    assert not strange


def test_steps_of_a_primitive_have_its_name():
    rows = listing.lines(entries.entry(jnp.linalg.eigvalsh, (X,), TARGETS["tf"]))
    loops = {row.primitive for row in rows if row.op == "StatelessWhile"}
    assert loops == {"eigh"}


def tanh_and_sum(x):
    return jnp.tanh(x).sum(1)


@pytest.mark.parametrize(
    ("module", "stage", "message"),
    [
        (onnx, "converted", "'result/Tanh' is Tanh, which lowering does not write to ONNX"),
        (onnx, "run", "Could not find an implementation for Tanh(13) node"),
        (tflite_converter, "keep_transposes", "TF Select ops: Tanh"),
        (graph_model, "_encoded", "TF.js has no Tanh"),
    ],
)
def test_what_a_converter_refuses_has_a_line(module, stage, message, monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise UnsupportedError(message)

    monkeypatch.setattr(module, stage, refuse)
    with pytest.raises(UnsupportedError, match=r"Tanh of tanh at .*test_origins\.py:\d+") as caught:
        if module is onnx:
            export.to_onnx(tanh_and_sum, (X,))
        elif module is tflite_converter:
            export.to_tflite(tanh_and_sum, (X,))
        else:
            export.to_tfjs(tanh_and_sum, (X,), tmp_path / "model")
    assert "Sum of reduce_sum" not in str(caught.value)


def test_names_of_ops_as_runtimes_write_them():
    made = entries.entry(lambda x: x @ x + x.max(), (np.stack([X, X]),), TARGETS["tflite"])
    for message, named in (
        ("node BATCH_MATMUL failed to prepare", "BatchMatMulV2 of dot_general"),
        ("failed to delegate REDUCE_MAX", None),
        ("where the max of all shapes is", None),
    ):
        with pytest.raises(UnsupportedError) as caught, origins.located([made]):
            raise UnsupportedError(message)
        found = str(caught.value).removeprefix(message)
        assert (named in found) if named else not found
