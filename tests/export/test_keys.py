"""PRNG keys are inputs, outputs and parameters of models, as key data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from lowering import export
from lowering.export.entries import entry
from lowering.targets import TARGETS

KEY = jax.random.key(3)
PARAMS = {"key": jax.random.key(1), "unused": jax.random.split(jax.random.key(2), 3)}


def draw(params, keys, x):
    """Random bits of a key that is kept, and of one that is given for each row."""
    (first, *_), rows = keys["of all"], keys["rows"]
    bits = jax.vmap(lambda key: jax.random.bits(key, (2,)))(rows)
    kept = jax.random.bits(jax.random.clone(params["key"]), (3,))
    return {"bits": bits + x[:, None], "kept": kept, "moved": rows[::-1], "first": first}


def keys(number):
    of_all = (jax.random.key(5, impl="rbg"), KEY)
    return {"of all": of_all, "rows": jax.random.split(KEY, number)}


def write(to, path, *args, **options):
    if to in ("saved_model", "tfjs"):
        getattr(export, f"to_{to}")(*args, path / "model", **options)
    else:
        getattr(export, f"to_{to}")(*args, **options)


@pytest.mark.parametrize("to", ["saved_model", "tflite", "onnx", "tfjs"])
def test_keys_of_all_kinds(to, tmp_path):
    args = (keys(4), np.arange(4, dtype=np.uint32))
    shapes = [{"of all": ("", ""), "rows": "b"}, "b"]
    write(to, tmp_path, draw, args, params=PARAMS, polymorphic_shapes=shapes)


def test_structs_of_keys():
    args = (keys(4), np.arange(4, dtype=np.uint32))
    structs = jax.tree_util.tree_map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), args)
    made = entry(draw, structs, TARGETS["onnx"], params=PARAMS)
    assert [(tuple(spec.shape), spec.dtype.name) for spec in made.specs] == [
        ((4,), "uint32"),
        ((2,), "uint32"),
        ((4, 2), "uint32"),
        ((4,), "uint32"),
    ]
    # Keys and their data are the same inputs.
    np.testing.assert_array_equal(made.inputs(args)[2], jax.random.key_data(args[0]["rows"]))


def test_an_unused_key_costs_nothing():
    def fun(params, x):
        return jnp.sin(params["x"] * x)

    onnx = pytest.importorskip("onnx")
    x = np.float32([1, 2])
    found = []
    for params in ({"x": x}, {"x": x, **PARAMS}):
        graph = onnx.load_model_from_string(export.to_onnx(fun, (x,), params=params)).graph
        found.append(([node.op_type for node in graph.node], len(graph.initializer)))
    assert found[0] == found[1]


@pytest.mark.parametrize("to", ["saved_model", "tflite", "onnx", "tfjs"])
def test_a_model_with_dropout(to, tmp_path):
    """Its state has a key, which serving does not use."""
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.Dropout(0.5, rngs=rngs), nnx.relu)
    model.eval()
    graph, state = nnx.split(model)

    def serve(state, x):
        return nnx.merge(graph, state)(x)

    assert any(jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) for x in jax.tree.leaves(state))
    write(to, tmp_path, serve, (np.ones((2, 3), np.float32),), params=state)
