"""An LSTM encoder, and an LSTM decoder whose next input is the token that it has chosen."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model

_VOCABULARY = 16


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

    hidden: int
    target_length: int

    @nn.compact
    def __call__(self, tokens: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
        encoder = nn.RNN(nn.OptimizedLSTMCell(self.hidden), return_carry=True)
        state, _ = encoder(jax.nn.one_hot(tokens, _VOCABULARY), seq_lengths=lengths)
        decoder = nn.scan(
            DecoderStep,
            variable_broadcast="params",
            split_rngs={"params": False},
            length=self.target_length,
            out_axes=1,
        )
        start = jnp.zeros(tokens.shape[0], jnp.int32)
        _, logits = decoder(self.hidden)((state, start), None)
        return logits, jnp.argmax(logits, axis=-1)


def _model(length: int, **sizes: int) -> Model:
    network = Seq2Seq(**sizes)

    def variables(key: jax.Array, inputs: dict) -> dict:
        return network.init(key, inputs["tokens"], inputs["lengths"])

    def apply(params: dict, inputs: dict) -> tuple[jax.Array, jax.Array]:
        return network.apply(params, inputs["tokens"], inputs["lengths"])

    dimensions = {"batch": 2, "length": length}
    return Model("seq2seq_lstm", variables, apply, _draw, dimensions)


def _draw(rng: np.random.Generator, batch: int, length: int) -> dict[str, np.ndarray]:
    """Returns "tokens", int32 [batch, length], and their valid "lengths", int32 [batch]."""
    return {
        "tokens": rng.integers(_VOCABULARY, size=(batch, length), dtype=np.int32),
        "lengths": rng.integers(1, length + 1, size=batch, dtype=np.int32),
    }


MODELS = {
    "small": _model(5, hidden=8, target_length=4),
    "realistic": _model(24, hidden=256, target_length=16),
}
