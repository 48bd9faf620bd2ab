"""A transformer for translation: an encoder, and a decoder that stops when all sentences end."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from harnesses.models.registry import Model
from harnesses.models.transformer import MLP, PADDING, VOCABULARY, Embed, Encoder, draw_tokens

# Tokens less than this end a sentence. With random parameters all tokens are equally likely, so
# with one end token few sentences would end.
_NUM_END_TOKENS = 100


class Translator(nn.Module):
    """Encodes the source once and predicts the target from it, both int32 [batch, length]."""

    layers: int
    features: int
    heads: int

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


def _model(source_length: int, target_length: int, **sizes: int) -> Model:
    translator = Translator(**sizes)

    def variables(key: jax.Array, source: jax.Array) -> dict:
        return translator.init(key, source, source)

    def apply(params: dict, source: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Translates greedily; returns the tokens, their logits, and the number of steps."""
        batch = source.shape[0]
        encoded = translator.apply(params, source, method="encode")

        def unfinished(carry: tuple) -> jax.Array:
            step, _, _, ended = carry
            return (step < target_length - 1) & ~ended.all()

        def write(carry: tuple) -> tuple:
            step, target, scores, ended = carry
            logits = translator.apply(params, encoded, source, target, method="decode")
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
            jnp.zeros((batch, target_length), jnp.int32),
            jnp.zeros((batch, target_length, VOCABULARY), jnp.float32),
            jnp.zeros(batch, bool),
        )
        steps, target, scores, _ = jax.lax.while_loop(unfinished, write, start)
        return target, scores, steps

    return Model(
        "transformer_wmt",
        variables,
        apply,
        draw_tokens,
        {"batch": 2, "length": source_length},
        tolerance=1e-4,
        # JAX cannot differentiate a while loop in reverse mode.
        differentiable=False,
    )


MODELS = {
    "small": _model(6, 5, layers=1, features=16, heads=2),
    "realistic": _model(32, 32, layers=4, features=256, heads=8),
}
