"""A transformer encoder on padded sentences, and the blocks that the other transformers use."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model

PADDING = 0
VOCABULARY = 1000
LENGTH = 64


class MLP(nn.Module):
    """The feed-forward block of a layer."""

    hidden: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(self.hidden)(x)))


class Embed(nn.Module):
    """Embeds tokens and positions: maps int32 [batch, length] to [batch, length, features]."""

    features: int
    vocabulary: int = VOCABULARY

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        length = tokens.shape[1]
        words = nn.Embed(self.vocabulary, self.features)(tokens)
        return words + nn.Embed(length, self.features)(jnp.arange(length))


class EncoderLayer(nn.Module):
    """Self-attention and an MLP, each with a layer norm before it and a residual connection."""

    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        x += nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
        return x + MLP(self.hidden)(nn.LayerNorm()(x))


class Encoder(nn.Module):
    """An encoder of `layers` layers that does not attend to padding."""

    layers: int = 6
    features: int = 256
    heads: int = 8
    hidden: int = 1024

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        present = tokens != PADDING
        mask = nn.make_attention_mask(present, present)
        x = Embed(self.features)(tokens)
        for _ in range(self.layers):
            x = EncoderLayer(self.heads, self.hidden)(x, mask)
        return nn.LayerNorm()(x)


def make_tokens(seed: int, batch: int, length: int = LENGTH) -> np.ndarray:
    """Returns sentences of different lengths, int32 [batch, length], padded at the end."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, VOCABULARY, size=(batch, length))
    lengths = rng.integers(length // 2, length + 1, size=(batch, 1))
    return np.where(np.arange(length) < lengths, tokens, PADDING).astype(np.int32)


def make_model(name: str = "transformer", **sizes: int) -> Model:
    """Returns an encoder with the given sizes, the attributes of `Encoder`."""
    encoder = Encoder(**sizes)

    def init(seed: int) -> dict:
        return random_parameters(encoder.init, make_tokens(0, 1), seed=seed)

    return Model(name, init, encoder.apply, make_tokens, tolerance=1e-4)


MODEL = make_model()
