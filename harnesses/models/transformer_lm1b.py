"""A causal language model that continues a text, with its cache of keys and values in and out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model
from harnesses.models.transformer import MLP, VOCABULARY


class LanguageModel(nn.Module):
    """Returns logits of the next token, [batch, 1, vocabulary]; shares the token embedding.

    The cache has room for `capacity` tokens.
    """

    capacity: int
    layers: int
    features: int
    heads: int

    @nn.compact
    def __call__(self, tokens: jax.Array, positions: jax.Array) -> jax.Array:
        embed = nn.Embed(VOCABULARY, self.features)
        x = embed(tokens) + nn.Embed(self.capacity, self.features)(positions)
        for _ in range(self.layers):
            x += nn.MultiHeadDotProductAttention(self.heads, decode=True)(nn.LayerNorm()(x))
            x += MLP(4 * self.features)(nn.LayerNorm()(x))
        return embed.attend(nn.LayerNorm()(x))


def _model(length: int, past: int, **sizes: int) -> Model:
    """A model that reads `length` tokens, one at a time, after `past` tokens that it has read."""
    network = LanguageModel(**sizes)

    def all_variables(key: jax.Array, tokens: jax.Array) -> dict:
        # Flax makes the cache as long as the tokens that it is initialized with.
        tokens = jnp.zeros((tokens.shape[0], network.capacity), tokens.dtype)
        return network.init(key, tokens, jnp.arange(network.capacity))

    def variables(key: jax.Array, inputs: dict) -> dict:
        return {"params": all_variables(key, inputs["tokens"])["params"]}

    def apply(params: dict, inputs: dict) -> tuple[jax.Array, dict]:
        """Returns the logits, [batch, length, vocabulary], and the cache after the last token."""

        def step(state: tuple, token: jax.Array) -> tuple[tuple, jax.Array]:
            cache, position = state
            logits, updated = network.apply(
                {**params, "cache": cache}, token[:, None], position[None], mutable=["cache"]
            )
            return (updated["cache"], position + 1), logits[:, 0]

        start = inputs["cache"], inputs["position"]
        (cache, _), logits = jax.lax.scan(step, start, inputs["tokens"].T)
        return logits.swapaxes(0, 1), cache

    def draw(rng: np.random.Generator, batch: int, length: int) -> dict[str, Any]:
        """Returns "tokens", int32 [batch, length], the "position" of the first, and the "cache"."""
        tokens = rng.integers(VOCABULARY, size=(batch, length), dtype=np.int32)

        def fill(leaf: jax.ShapeDtypeStruct) -> np.ndarray:
            if not leaf.shape:
                return np.asarray(past, leaf.dtype)
            keys_or_values = rng.normal(size=leaf.shape).astype(leaf.dtype)
            keys_or_values[:, past:] = 0
            return keys_or_values

        shapes = jax.eval_shape(all_variables, jax.random.key(0), tokens)["cache"]
        cache = jax.tree.map(fill, shapes)
        return {"tokens": tokens, "position": np.array(past, np.int32), "cache": cache}

    dimensions = {"batch": 2, "length": length}
    return Model("transformer_lm1b", variables, apply, draw, dimensions, tolerance=1e-4)


MODELS = {
    "small": _model(3, 2, capacity=8, layers=1, features=16, heads=2),
    "realistic": _model(16, 40, capacity=128, layers=6, features=256, heads=8),
}
