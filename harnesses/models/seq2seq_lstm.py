"""An LSTM encoder, and an LSTM decoder whose next input is the token that it has chosen."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model

_VOCABULARY = 16
_SOURCE_LENGTH, _TARGET_LENGTH = 12, 8


class DecoderStep(nn.Module):
    """One step of the decoder: maps (state, last token) to (state, next token) and logits."""

    hidden: int

    @nn.compact
    def __call__(self, carry: tuple, _: None) -> tuple[tuple, jax.Array]:
        state, token = carry
        state, y = nn.OptimizedLSTMCell(self.hidden)(state, jax.nn.one_hot(token, _VOCABULARY))
        logits = nn.Dense(_VOCABULARY)(y)
        return (state, jnp.argmax(logits, axis=-1)), logits


class Seq2Seq(nn.Module):
    """Returns the logits of the target tokens, [batch, length, vocabulary], and the tokens."""

    hidden: int = 64

    @nn.compact
    def __call__(self, tokens: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
        encoder = nn.RNN(nn.OptimizedLSTMCell(self.hidden), return_carry=True)
        state, _ = encoder(jax.nn.one_hot(tokens, _VOCABULARY), seq_lengths=lengths)
        decoder = nn.scan(
            DecoderStep,
            variable_broadcast="params",
            split_rngs={"params": False},
            length=_TARGET_LENGTH,
            out_axes=1,
        )
        start = jnp.zeros(tokens.shape[0], jnp.int32)
        _, logits = decoder(self.hidden)((state, start), None)
        return logits, jnp.argmax(logits, axis=-1)


_seq2seq = Seq2Seq()


def _apply(params: dict, inputs: dict) -> tuple[jax.Array, jax.Array]:
    return _seq2seq.apply(params, inputs["tokens"], inputs["lengths"])


def init(seed: int) -> dict:
    """Returns the variables."""
    inputs = make_inputs(0, 1)
    return random_parameters(_seq2seq.init, inputs["tokens"], inputs["lengths"], seed=seed)


def make_inputs(seed: int, batch: int) -> dict[str, np.ndarray]:
    """Returns "tokens", int32 [batch, 12], and their valid "lengths", int32 [batch]."""
    rng = np.random.default_rng(seed)
    return {
        "tokens": rng.integers(_VOCABULARY, size=(batch, _SOURCE_LENGTH), dtype=np.int32),
        "lengths": rng.integers(1, _SOURCE_LENGTH + 1, size=batch, dtype=np.int32),
    }


MODEL = Model("seq2seq_lstm", init, _apply, make_inputs)
