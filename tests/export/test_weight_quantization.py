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
