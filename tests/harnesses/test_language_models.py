"""Language models that read a prompt in chunks read what they read token by token."""

import dataclasses

import jax
import numpy as np
import pytest

from harnesses.models import decoder_layers, decoder_linen, decoder_nnx
from lowering.export.language_models import causal_mask

CAPACITY = 32
SIZES = {
    name: dataclasses.replace(sizes, layers=2, window=sizes.window and 8)
    for name, sizes in {"gemma": decoder_layers.GEMMA, "qwen": decoder_layers.QWEN}.items()
}


@pytest.mark.parametrize("module", [decoder_nnx, decoder_linen], ids=["nnx", "linen"])
@pytest.mark.parametrize("name", SIZES)
def test_chunks_with_padding_are_read_like_single_tokens(name, module):
    sizes = SIZES[name]
    step, params = module.decoder(sizes, seed=0)
    step = jax.jit(step)
    tokens = np.random.default_rng(0).integers(sizes.vocabulary, size=30, dtype=np.int32)
    one = many = sizes.empty(CAPACITY)
    for i, token in enumerate(tokens):
        positions = np.array([i], np.int32)
        mask = causal_mask(positions, CAPACITY, "float32")
        expected, one = step(params, token[None, None], positions, mask, one)
    for begin, end in ((0, 12), (12, 17), (17, 30)):  # The padding of the last is beyond the end.
        positions, given = np.zeros((2, 16), np.int32)
        positions[: end - begin] = np.arange(begin, end)
        given[: end - begin] = tokens[begin:end]
        mask = causal_mask(positions, CAPACITY, "float32")
        logits, many = step(params, given[None], positions, mask, many)
    np.testing.assert_allclose(logits[0, end - begin - 1], expected[0, 0], atol=1e-4)
    for x, y in zip(jax.tree.leaves(many), jax.tree.leaves(one), strict=True):
        np.testing.assert_allclose(x[:, :, : len(tokens)], y[:, :, : len(tokens)], atol=1e-4)
