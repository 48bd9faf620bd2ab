"""A GPT that samples a continuation: one pass over the prompt, then a loop over new tokens."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model
from harnesses.models.transformer import MLP

# The keys and values of a layer, [batch, capacity, heads, features of a head].
Cache = tuple[jax.Array, jax.Array]


class CachedAttention(nn.Module):
    """Causal self-attention of tokens to those in the cache and to each other."""

    heads: int

    @nn.compact
    def __call__(self, x: jax.Array, cache: Cache, position: Any) -> tuple[jax.Array, Cache]:
        """Maps [batch, length, features] to the same shape, and writes to the cache.

        `position` is that of the first token: an index of the cache.
        """
        batch, length, features = x.shape
        parts = nn.Dense(3 * features)(x).reshape(batch, length, 3, self.heads, -1)
        query, key, value = (parts[:, :, i] for i in range(3))
        keys, values = (
            jax.lax.dynamic_update_slice_in_dim(kept, new, position, axis=1)
            for kept, new in zip(cache, (key, value), strict=True)
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, keys) / np.sqrt(features // self.heads)
        seen = jnp.arange(keys.shape[1]) <= position + jnp.arange(length)[:, None]
        weights = nn.softmax(jnp.where(seen, scores, -jnp.inf))
        attended = jnp.einsum("bhqk,bkhd->bqhd", weights, values)
        return nn.Dense(features)(attended.reshape(x.shape)), (keys, values)


class GPT(nn.Module):
    """Returns logits of the token after each token, [batch, length, vocabulary], and the caches."""

    vocabulary: int
    positions: int
    layers: int
    features: int
    heads: int

    @nn.compact
    def __call__(
        self, tokens: jax.Array, caches: list[Cache], position: Any
    ) -> tuple[jax.Array, list[Cache]]:
        embed = nn.Embed(self.vocabulary, self.features)
        positions = position + jnp.arange(tokens.shape[1])
        x = embed(tokens) + nn.Embed(self.positions, self.features)(positions)
        updated = []
        for cache in caches:
            y, cache = CachedAttention(self.heads)(nn.LayerNorm()(x), cache, position)
            x += y
            x += MLP(4 * self.features)(nn.LayerNorm()(x))
            updated.append(cache)
        return embed.attend(nn.LayerNorm()(x)), updated

    def empty(self, batch: Any, capacity: Any) -> list[Cache]:
        """Caches with room for `capacity` tokens, one for each layer."""
        zeros = jnp.zeros((batch, capacity, self.heads, self.features // self.heads))
        return [(zeros, zeros)] * self.layers


def _model(length: int, steps: int, candidates: int, temperature: float, **sizes: int) -> Model:
    """A model that samples `steps` tokens, each of the most probable `candidates`."""
    network = GPT(**sizes)

    def variables(key: jax.Array, inputs: dict) -> dict:
        prompt = inputs["prompt"]
        return network.init(key, prompt, network.empty(*prompt.shape), 0)

    def apply(params: dict, inputs: dict) -> tuple[jax.Array, jax.Array]:
        """Returns the new tokens, int32 [batch, steps], and the logits that they are drawn from."""
        batch, length = inputs["prompt"].shape
        caches = network.empty(batch, length + steps)
        logits, caches = network.apply(params, inputs["prompt"], caches, 0)

        def sample(state: tuple, key: jax.Array) -> tuple[tuple, tuple]:
            logits, caches, position = state
            least = jax.lax.top_k(logits, candidates)[0][:, -1:]
            kept = jnp.where(logits < least, -jnp.inf, logits / temperature)
            token = jax.random.categorical(key, kept)
            after, caches = network.apply(params, token[:, None], caches, position)
            return (after[:, 0], caches, position + 1), (token, logits)

        key = jax.random.wrap_key_data(inputs["key"], impl="threefry2x32")
        start = logits[:, -1], caches, jnp.int32(length)
        _, (tokens, logits) = jax.lax.scan(sample, start, jax.random.split(key, steps))
        return tokens.T, logits.swapaxes(0, 1)

    def draw(rng: np.random.Generator, batch: int, length: int) -> dict[str, np.ndarray]:
        """Returns "prompt", int32 [batch, length], and "key", data of a PRNG key, uint32 [2]."""
        return {
            "prompt": rng.integers(network.vocabulary, size=(batch, length), dtype=np.int32),
            "key": rng.integers(2**32, size=2, dtype=np.uint32),
        }

    return Model("gpt", variables, apply, draw, {"batch": 2, "length": length}, tolerance=1e-4)


MODELS = {
    "small": _model(5, 4, 8, 0.8, vocabulary=32, positions=32, layers=2, features=16, heads=2),
    "realistic": _model(
        32, 32, 40, 0.8, vocabulary=1024, positions=256, layers=6, features=384, heads=6
    ),
}
