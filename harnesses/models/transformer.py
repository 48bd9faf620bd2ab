"""A transformer encoder on padded sentences, and the blocks that the other transformers use."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model

PADDING = 0
VOCABULARY = 1000
# The number of positions that there are embeddings of.
POSITIONS = 128


class MLP(nn.Module):
    """The feed-forward block of a layer."""

    hidden: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(self.hidden)(x)))


class Embed(nn.Module):
    """Embeds tokens and positions: maps int32 [batch, length] to [batch, length, features]."""

    features: int

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        words = nn.Embed(VOCABULARY, self.features)(tokens)
        return words + nn.Embed(POSITIONS, self.features)(jnp.arange(tokens.shape[1]))


class EncoderLayer(nn.Module):
    """Self-attention and an MLP, each with a layer norm before it and a residual connection."""

    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        x += nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
        return x + MLP(self.hidden)(nn.LayerNorm()(x))


class Encoder(nn.Module):
    """An encoder of `layers` layers that does not attend to padding."""

    layers: int
    features: int
    heads: int
    hidden: int

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        present = tokens != PADDING
        mask = nn.make_attention_mask(present, present)
        x = Embed(self.features)(tokens)
        for _ in range(self.layers):
            x = EncoderLayer(self.heads, self.hidden)(x, mask)
        return nn.LayerNorm()(x)


def draw_tokens(rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
    """Returns sentences of different lengths, int32 [batch, length], padded at the end."""
    tokens = rng.integers(1, VOCABULARY, size=(batch, length))
    lengths = rng.integers((length + 1) // 2, length + 1, size=(batch, 1))
    return np.where(np.arange(length) < lengths, tokens, PADDING).astype(np.int32)


def _model(length: int, **sizes: int) -> Model:
    encoder = Encoder(**sizes)
    dimensions = {"batch": 2, "length": length}
    return Model(
        "transformer", encoder.init, encoder.apply, draw_tokens, dimensions, tolerance=1e-4
    )


MODELS = {
    "small": _model(6, layers=2, features=16, heads=2, hidden=32),
    "realistic": _model(64, layers=6, features=256, heads=8, hidden=1024),
}
