"""Large arrays that functions close over are exported as parameters are, and not as constants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export
from lowering.export import jitted
from lowering.export.entries import entries
from lowering.ops import constants
from lowering.targets import ONNX, XLA
from tests.helpers import op_counts

EXPORTERS = {
    "saved_model": export.to_saved_model,
    "onnx": export.to_onnx,
    "tfjs": export.to_tfjs,
    "tflite": export.to_tflite,
}

RNG = np.random.default_rng(0)
X = np.ones((2, 64), np.float32)
W = RNG.standard_normal((64, 64)).astype(np.float32) / 8
V = jnp.asarray(W.T.copy())
STACK = np.stack([W, W.T, -W])
TABLE = jnp.asarray(RNG.standard_normal((100, 64)).astype(np.float32))
KERNEL = RNG.standard_normal((3, 3, 4, 8)).astype(np.float32)
MASK = W > 0
INTEGERS, UNSIGNED = jnp.arange(5000), jnp.arange(4000, dtype=np.uint32)
COMPLEX = (W + 1j * W.T).astype(np.complex64)
BYTES = (W * 100).astype(np.int8)
BFLOAT16 = W.astype(jnp.bfloat16)


@jax.jit
def layer(x):
    return jnp.tanh(x @ W)


def step(c):
    return lax.cond(c.sum() > 0, lambda c: jnp.tanh(c @ W), lambda c: jnp.sin(c @ V), c)


PROGRAMS = {
    "layers": lambda x: jnp.tanh(x @ W) @ V,
    "jit": lambda x: layer(layer(x)) + layer(2 * x),
    "remat": jax.checkpoint(layer),
    "norm": lambda x: (x @ W) * TABLE[0] + TABLE[1],
    "scan": lambda x: lax.scan(lambda c, _: (jnp.tanh(c @ W), c.sum()), x, None, 4),
    "scan over layers": lambda x: lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum()), x, STACK),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 1e3, lambda c: c + abs(c @ W) + 1, x),
    "branches": lambda x: lax.fori_loop(0, 3, lambda i, c: step(c), x),
    "switch": lambda x: lax.switch(1, [lambda x: x @ W, lambda x: x @ V, lambda x: -x], x),
    "mapped": jax.vmap(lambda row: W @ row),
    "one by one": lambda x: lax.map(lambda row: row @ W, x),
    "lookup": lambda x: TABLE[x.astype(int)[:, 0]],
    "scattered": lambda x: TABLE.at[x.astype(int)[:, 0]].add(1.0),
    "convolution": lambda x: lax.conv_general_dilated(
        x.reshape(2, 4, 4, 4), KERNEL, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    ),
    "contraction": lambda x: jnp.einsum("bi,kij->bkj", x, STACK),
    "bfloat16": lambda x: (x.astype(jnp.bfloat16) @ BFLOAT16).astype(np.float32),
    "int8": lambda x: jnp.matmul(x.astype(np.int8), BYTES, preferred_element_type=np.int32),
    "int32": lambda x: INTEGERS[x.astype(int)[0, 0]] + INTEGERS.sum(),
    "uint32": lambda x: UNSIGNED[:64] * x[0].astype(np.uint32),
    "complex": lambda x: abs(x @ COMPLEX),
    "bool": lambda x: jnp.where(MASK, x[0], 0.0) + MASK,
    "gradient": jax.grad(lambda x: layer(x).sum()),
    "used thrice": lambda x: (x @ W, x @ W + 1, x @ W.T),
    "an output": lambda x: (x.sum(), W),
}


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch):
    monkeypatch.setattr(constants, "LARGE_BYTES", 64)


@pytest.mark.parametrize("to", EXPORTERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, to, tmp_path):
    EXPORTERS[to](PROGRAMS[name], (X,), tmp_path / "model")


@pytest.mark.parametrize("name", ["layers", "jit", "scan", "convolution", "lookup"])
@pytest.mark.parametrize(
    ("to", "options"),
    [
        ("saved_model", {"gradients": True}),
        ("saved_model", {"target": "portable"}),
        ("onnx", {"external_data": True}),
        ("onnx", {"polymorphic_shapes": ["b, _"]}),
        ("onnx", {"quantize": "dynamic"}),
        ("onnx", {"quantize": "int8", "representative_data": [(X,)]}),
        ("tfjs", {"quantize": "uint8"}),
        ("tflite", {"quantize": "int8"}),
        ("tflite", {"quantize": "int4"}),
        ("tflite", {"quantize": "float16"}),
    ],
)
def test_options(name, to, options, tmp_path):
    EXPORTERS[to](PROGRAMS[name], (X,), tmp_path / "model", **options)


def test_no_graph_has_a_large_constant():
    (made,) = entries(PROGRAMS["branches"], (X,), XLA).values()
    assert len(made.concrete.variables) == 2
    assert op_counts(made.concrete.graph)["ReadVariableOp"] > 0
    assert made.concrete.graph.as_graph_def().ByteSize() < W.nbytes


def test_signatures_share_their_weights():
    both = {"once": lambda x: x @ V, "twice": lambda x: x @ V @ V}
    made = entries(both, dict.fromkeys(both, (X,)), ONNX)
    (once,), (twice,) = (entry.concrete.variables for entry in made.values())
    assert once is twice


def test_what_xla_compiles_has_no_large_constant():
    def fun(x, y):
        return {"z": layer(x) @ V + y, "n": jnp.arange(3)}

    run = jitted.jitted(fun)
    for x, y in ((X, np.float32(1)), (X[:1], np.float32(2))):
        np.testing.assert_allclose(run(x, y)["z"], np.tanh(x @ W) @ V + y, rtol=1e-5)
    with jax.enable_x64(True):
        assert run(X, np.float32(1))["n"].dtype == np.int64
    compiled = jitted._with_large_arguments(jax.jit(fun).trace(X, 1.0))
    assert len(compiled.func.lower(*compiled.args, X, 1.0).as_text()) < W.nbytes
    assert jitted._with_large_arguments(jax.jit(lambda x: x + 1).trace(X)) is None
