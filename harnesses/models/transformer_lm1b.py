"""A causal language model, run one token at a time with a cache of keys and values."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model
from harnesses.models.transformer import MLP, VOCABULARY

_LENGTH = 16


class LanguageModel(nn.Module):
    """Returns logits of the next token, [batch, length, vocabulary]; shares the token embedding."""

    layers: int = 2
    features: int = 64
    heads: int = 4

    @nn.compact
    def __call__(self, tokens: jax.Array, positions: jax.Array) -> jax.Array:
        embed = nn.Embed(VOCABULARY, self.features)
        x = embed(tokens) + nn.Embed(_LENGTH, self.features)(positions)
        for _ in range(self.layers):
            x += nn.MultiHeadDotProductAttention(self.heads, decode=True)(nn.LayerNorm()(x))
            x += MLP(4 * self.features)(nn.LayerNorm()(x))
        return embed.attend(nn.LayerNorm()(x))


_model = LanguageModel()


def _variables(key: jax.Array, tokens: jax.Array) -> dict:
    return _model.init(key, tokens, jnp.arange(_LENGTH))


def _apply(params: dict, tokens: jax.Array) -> jax.Array:
    cache = jax.eval_shape(_variables, jax.random.key(0), tokens)["cache"]
    cache = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), cache)

    def step(cache: dict, token_and_position: tuple) -> tuple[dict, jax.Array]:
        token, position = token_and_position
        logits, updated = _model.apply(
            {**params, "cache": cache}, token[:, None], position[None], mutable=["cache"]
        )
        return updated["cache"], logits[:, 0]

    _, logits = jax.lax.scan(step, cache, (tokens.T, jnp.arange(_LENGTH)))
    return logits.swapaxes(0, 1)


def init(seed: int) -> dict:
    """Returns the variables, without the cache."""

    def parameters(key: jax.Array, tokens: jax.Array) -> dict:
        return {"params": _variables(key, tokens)["params"]}

    return random_parameters(parameters, make_inputs(0, 1), seed=seed)


def make_inputs(seed: int, batch: int) -> np.ndarray:
    """Returns tokens, int32 [batch, 16]."""
    rng = np.random.default_rng(seed)
    return rng.integers(VOCABULARY, size=(batch, _LENGTH), dtype=np.int32)


MODEL = Model("transformer_lm1b", init, _apply, make_inputs, tolerance=1e-4)
