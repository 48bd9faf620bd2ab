"""A transformer for translation: an encoder, and a decoder that stops when all sentences end."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model
from harnesses.models.transformer import MLP, PADDING, VOCABULARY, Embed, Encoder, make_tokens

_LENGTH = 12
# Tokens less than this end a sentence. With random parameters all tokens are equally likely, so
# with one end token few sentences would end.
_NUM_END_TOKENS = 100


class Translator(nn.Module):
    """Encodes the source once and predicts the target from it, both int32 [batch, length]."""

    layers: int = 2
    features: int = 64
    heads: int = 4

    def setup(self) -> None:
        """Creates the encoder and the decoder, which are called separately."""
        self.encoder = Encoder(self.layers, self.features, self.heads, 4 * self.features)
        self.decoder = Decoder(self.layers, self.features, self.heads)

    def encode(self, source: jax.Array) -> jax.Array:
        """Returns one vector per token of the source, [batch, length, features]."""
        return self.encoder(source)

    def decode(self, encoded: jax.Array, source: jax.Array, target: jax.Array) -> jax.Array:
        """Returns the logits of the token after each token, [batch, length, vocabulary]."""
        return self.decoder(encoded, source, target)

    def __call__(self, source: jax.Array, target: jax.Array) -> jax.Array:
        return self.decode(self.encode(source), source, target)


class Decoder(nn.Module):
    """A decoder with causal self-attention on the target, then cross-attention to the source."""

    layers: int
    features: int
    heads: int

    @nn.compact
    def __call__(self, encoded: jax.Array, source: jax.Array, target: jax.Array) -> jax.Array:
        causal = nn.make_causal_mask(target)
        across = nn.make_attention_mask(jnp.ones_like(target, bool), source != PADDING)
        x = Embed(self.features)(target)
        for _ in range(self.layers):
            x += nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=causal)
            attend = nn.MultiHeadDotProductAttention(self.heads)
            x += attend(nn.LayerNorm()(x), encoded, mask=across)
            x += MLP(4 * self.features)(nn.LayerNorm()(x))
        return nn.Dense(VOCABULARY)(nn.LayerNorm()(x))


_translator = Translator()


def _apply(params: dict, source: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Translates greedily; returns the tokens, their logits, and the number of steps."""
    batch = source.shape[0]
    encoded = _translator.apply(params, source, method="encode")

    def unfinished(carry: tuple) -> jax.Array:
        step, _, _, ended = carry
        return (step < _LENGTH - 1) & ~ended.all()

    def write(carry: tuple) -> tuple:
        step, target, scores, ended = carry
        logits = _translator.apply(params, encoded, source, target, method="decode")
        logits = jax.lax.dynamic_index_in_dim(logits, step, axis=1, keepdims=False)
        token = jnp.where(ended, PADDING, jnp.argmax(logits, axis=-1))
        return (
            step + 1,
            target.at[:, step + 1].set(token),
            scores.at[:, step].set(logits),
            ended | (token < _NUM_END_TOKENS),
        )

    start: tuple[Any, ...] = (
        0,
        jnp.zeros((batch, _LENGTH), jnp.int32),
        jnp.zeros((batch, _LENGTH, VOCABULARY), jnp.float32),
        jnp.zeros(batch, bool),
    )
    steps, target, scores, _ = jax.lax.while_loop(unfinished, write, start)
    return target, scores, steps


def init(seed: int) -> dict:
    """Returns the variables."""
    source = make_inputs(0, 1)
    return random_parameters(_translator.init, source, source, seed=seed)


def make_inputs(seed: int, batch: int) -> np.ndarray:
    """Returns the tokens of the source, int32 [batch, 12]; zero after the end of a sentence."""
    return make_tokens(seed, batch, _LENGTH)


# JAX cannot differentiate a while loop in reverse mode.
MODEL = Model("transformer_wmt", init, _apply, make_inputs, tolerance=1e-4, differentiable=False)
