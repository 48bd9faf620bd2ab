"""Weights of 8 and 4 bits in TF Lite models."""

import dataclasses
import inspect
import string
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harnesses.models import decoder_layers, decoder_nnx
from lowering import export
from lowering.errors import UnsupportedError
from lowering.export.language_models import causal_mask
from lowering.export.weight_quantization import Weights
from tools.bench_exports import count_ops

LENGTH = 64
# What of the float model's size remains; the graph is some tens of kilobytes in each.
SIZES = {"int8": 0.4, "int4": 0.28, Weights(8, integers=False): 0.4, Weights(4, block=64): 0.28}


@pytest.fixture(scope="module")
def trained():
    """A function of tokens, [1, LENGTH], that returns logits; trained parameters; texts."""
    optax = pytest.importorskip("optax")
    text = "".join(map(inspect.getsource, (textwrap, inspect, string)))
    tokens = np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.int32) % 128
    sizes = dataclasses.replace(
        decoder_layers.GEMMA, vocabulary=128, layers=1, features=128, hidden=256
    )
    step, params = decoder_nnx.decoder(sizes, seed=0)
    positions = np.arange(LENGTH, dtype=np.int32)
    mask = causal_mask(positions, LENGTH, "float32")

    def predict(params, tokens):
        return step(params, tokens, positions, mask, sizes.empty(LENGTH))[0]

    def loss(params, tokens):
        logits = jax.vmap(lambda x: predict(params, x[None])[0])(tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    optimizer = optax.adam(3e-3)

    @jax.jit
    def train(state, tokens):
        params, moments = state
        updates, moments = optimizer.update(jax.grad(loss)(params, tokens), moments)
        return optax.apply_updates(params, updates), moments

    rng = np.random.default_rng(0)
    state = params, optimizer.init(params)
    for _ in range(150):
        starts = rng.integers(len(tokens) - LENGTH, size=16)
        state = train(state, tokens[starts[:, None] + np.arange(LENGTH)])
    texts = tokens[: 24 * LENGTH].reshape(24, LENGTH)
    return predict, jax.tree.map(np.asarray, state[0]), texts


def exported(trained, quantize):
    predict, params, texts = trained
    return export.to_tflite(predict, (texts[:1],), params=params, quantize=quantize)


@pytest.fixture(scope="module")
def in_floats(trained):
    return exported(trained, None)


def perplexity(model, texts):
    """That of the texts, by LiteRT."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    run = litert.Interpreter(model_content=model).get_signature_runner()
    losses = []
    for text in texts:
        (logits,) = run(tokens=text[None]).values()
        of_text = jax.nn.log_softmax(jnp.asarray(logits[0, :-1]))
        losses.append(-np.mean(np.take_along_axis(np.asarray(of_text), text[1:, None], 1)))
    return np.exp(np.mean(losses))


@pytest.mark.parametrize("quantize", SIZES, ids=str)
def test_quantized_weights_keep_the_perplexity(quantize, trained, in_floats):
    pytest.importorskip("ai_edge_quantizer")
    model = exported(trained, quantize)
    assert len(model) < SIZES[quantize] * len(in_floats)
    before, after = (perplexity(x, trained[2]) for x in (in_floats, model))
    assert before < 20  # Of 128 characters: it has learned something.
    is_of_4_bits = quantize == "int4" or getattr(quantize, "bits", 8) == 4
    assert abs(after / before - 1) < (0.05 if is_of_4_bits else 0.01)


def test_a_table_of_several_signatures_is_read_by_lookups_and_stored_once():
    pytest.importorskip("ai_edge_quantizer")
    table = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    rows = {
        f"rows{n}": (lambda table, i: table.at[i].get(mode="promise_in_bounds")) for n in (2, 3)
    }
    args = {f"rows{n}": (np.arange(n, dtype=np.int32),) for n in (2, 3)}
    model = export.to_tflite(rows, args, params=table, quantize="int8")
    assert count_ops(model)["EMBEDDING_LOOKUP"] == 2
    assert table.size < len(model) < 1.5 * table.size


_X = np.random.default_rng(1).normal(size=(1, 1, 64)).astype(np.float32)
_MATRICES = np.random.default_rng(2).normal(size=(32, 64, 64)).astype(np.float32) / 8


def _of_layers(params, x):
    """A scan over layers, as Flax and MaxText make it; too long to be unrolled for its own sake."""

    def layer(x, matrix):
        return x + jnp.tanh(x @ matrix), None

    return jax.lax.scan(layer, x, params)[0]


def _of_calls(params, x):
    """A function that is called for each layer, long enough to be a function of the graph."""

    @jax.checkpoint
    def layer(matrix, x):
        y = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        return x + jnp.tanh(jax.nn.silu(jnp.sin(y) * jnp.cos(y)) @ matrix) * jnp.exp(-y * y)

    for matrix in params[:3]:
        x = layer(matrix, x)
    return x


@pytest.mark.parametrize(
    ("fun", "params", "x", "products"),
    [
        (lambda params, x: x @ params, _MATRICES[0].astype("bfloat16"), _X.astype("bfloat16"), 1),
        (lambda params, x: x @ params, _MATRICES[0].astype("float16"), _X.astype("float16"), 1),
        (lambda params, x: x @ params.astype("float32"), _MATRICES[0].astype("bfloat16"), _X, 1),
        (_of_layers, _MATRICES, _X, 32),
        (_of_calls, _MATRICES, _X, 3),
    ],
    ids=["bfloat16", "float16", "bfloat16 made float32", "layers", "calls"],
)
def test_products_of_one_row_and_weights_are_quantized(fun, params, x, products):
    """TF Lite has other ops for products with arrays that are computed."""
    pytest.importorskip("ai_edge_quantizer")
    model = export.to_tflite(fun, (x,), params=params, quantize="int8", tolerance=0.2)
    assert count_ops(model)["FULLY_CONNECTED"] == products
    assert "BATCH_MATMUL" not in model.ops and "WHILE" not in model.ops
    assert len(model) < 0.5 * products * _MATRICES[0].nbytes + 3000


def test_an_array_that_is_computed_in_one_call_is_no_weight_in_any():
    @jax.checkpoint
    def layer(matrix, x):
        y = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        return x + jnp.tanh(jax.nn.silu(jnp.sin(y) * jnp.cos(y)) @ matrix) * jnp.exp(-y * y)

    def both(params, x, y):
        return layer(params, layer(y, layer(params, x)))

    model = export.to_tflite(both, (_X, _MATRICES[0]), params=_MATRICES[1])
    assert {k: n for k, n in model.ops.items() if "MATMUL" in k or "FULLY" in k} == {
        "FULLY_CONNECTED": 2,
        "BATCH_MATMUL": 1,
    }


def test_tables_that_loops_read_are_quantized():
    """A constant stands in the graph around a loop, too, where nothing uses it."""
    pytest.importorskip("ai_edge_quantizer")
    table = np.random.default_rng(0).normal(size=(200, 64)).astype(np.float32)

    def fun(table, x):
        return jax.lax.fori_loop(0, 150, lambda i, x: x + table[i] * 0.01, x)

    model = export.to_tflite(fun, (_X,), params=table, quantize="int8")
    assert "WHILE" in model.ops and "EMBEDDING_LOOKUP" in model.ops
    assert len(model) < 0.5 * table.nbytes


@pytest.mark.parametrize(
    ("quantize", "part"),
    [("int8", 0.3), ("int4", 0.25), (Weights(8, integers=False), 0.3)],
    ids=str,
)
def test_matrices_of_experts_are_quantized(quantize, part):
    pytest.importorskip("ai_edge_quantizer")
    up, down = _MATRICES[:8], _MATRICES[8:16]

    def experts(params, x, scores):
        hidden = jnp.einsum("btd,edf->ebtf", x, params["up"])
        made = jnp.einsum("ebtf,efd->ebtd", jax.nn.silu(hidden), params["down"])
        return jnp.einsum("ebtd,bte->btd", made, jax.nn.softmax(scores))

    x = np.random.default_rng(3).normal(size=(1, 6, 64)).astype(np.float32)
    params = {"up": up, "down": down}
    model = export.to_tflite(experts, (x, x[..., :8]), params=params, quantize=quantize)
    assert len(model) < part * (up.nbytes + down.nbytes) + 6000


def test_channels_that_are_no_multiple_of_a_block_have_one_scale():
    pytest.importorskip("ai_edge_quantizer")
    params = _MATRICES[0, :, :40], _MATRICES[1, :40]
    x = np.random.default_rng(3).normal(size=(6, 64)).astype(np.float32)
    model = export.to_tflite(
        lambda params, x: jnp.tanh(jnp.tanh(x @ params[0]) @ params[1]) * 2,
        (x,),
        params=params,
        quantize="int4",
    )
    assert len(model) < 0.25 * sum(p.nbytes for p in params) + 3000


@pytest.mark.parametrize(("name", "number"), [("table", np.nan), ("head", -np.inf)])
def test_weights_that_have_no_scale_are_an_error(name, number):
    """Other constants, such as masks, may be infinite."""
    pytest.importorskip("ai_edge_quantizer")
    params = {"table": np.ones((24, 32), np.float32), "head": np.ones((32, 48), np.float32)}
    params["mask"] = np.triu(np.full((4, 48), -np.inf, np.float32), 1)

    def fun(params, tokens):
        return jax.nn.softmax(params["table"][tokens] @ params["head"] + params["mask"])

    args = (np.arange(4, dtype=np.int32),)
    export.to_tflite(fun, args, params=params, quantize="int8", verify=False)
    params[name] = params[name].copy()
    params[name][2, 3] = number
    place = r"\[2, 3\]" if name == "table" else r"\[3, 2\]"
    with pytest.raises(UnsupportedError, match=f"cannot be quantized.* has {number} at {place}"):
        export.to_tflite(fun, args, params=params, quantize="int8")


def test_a_missing_quantizer_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_quantizer", None)
    with pytest.raises(ImportError, match=r"pip install 'ai-edge-quantizer>="):
        export.to_tflite(lambda x: x, (np.zeros(3, np.float32),), quantize="int8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 3}, "bits is 4 or 8, not 3"),
        ({"embedding": 16}, "embedding is 4 or 8, not 16"),
        ({"block": 48}, "block is one of 32, 64, 128, 256"),
        ({"block": 32, "integers": False}, "with integers=True, or None; found block=32"),
    ],
)
def test_weights_that_no_kernel_takes_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        Weights(**options)
