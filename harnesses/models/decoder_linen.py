"""A decoder-only language model in flax linen; see `decoder_layers`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from harnesses.models.decoder_layers import (
    Cache,
    Decoder,
    LayerCache,
    attend,
    normalize,
    rotate,
    scaled,
    windowed,
    written,
)
from harnesses.models.parameters import random_parameters


class Norm(nn.Module):
    """RMSNorm; that of Gemma adds one to its scale."""

    offset: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        init = nn.initializers.zeros if self.offset else nn.initializers.ones
        scale = self.param("scale", init, (x.shape[-1],))
        return normalize(x, float(self.offset) + scale)


class Attention(nn.Module):
    """Grouped-query attention with normalized queries and keys."""

    sizes: Decoder
    layer: int

    @nn.compact
    def __call__(
        self, x: jax.Array, positions: jax.Array, mask: jax.Array, cache: LayerCache
    ) -> tuple[jax.Array, LayerCache]:
        sizes = self.sizes
        window = sizes.window if sizes.is_local(self.layer) else None
        base = sizes.base if window is None else 1e4

        def heads(count: int, name: str) -> jax.Array:
            y = nn.Dense(count * sizes.head_features, use_bias=False, name=name)(x)
            return y.reshape(*y.shape[:2], count, sizes.head_features)

        query = Norm(sizes.is_gemma, name="query_norm")(heads(sizes.heads, "query"))
        key = Norm(sizes.is_gemma, name="key_norm")(heads(sizes.key_heads, "key"))
        new = rotate(key, positions, base), heads(sizes.key_heads, "value")
        keys, values = (
            written(kept, y.swapaxes(1, 2), positions[0])
            for kept, y in zip(cache, new, strict=True)
        )
        if window is not None:
            mask = windowed(mask, positions, window)
        query = rotate(query, positions, base) * sizes.head_features**-0.5
        attended = attend(query, (keys, values), mask)
        return nn.Dense(sizes.features, use_bias=False, name="out")(attended), (keys, values)


class MLP(nn.Module):
    """A gated MLP."""

    sizes: Decoder

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        def dense(count: int, name: str) -> nn.Dense:
            return nn.Dense(count, use_bias=False, name=name)

        gate = dense(self.sizes.hidden, "gate")(x)
        gate = nn.gelu(gate) if self.sizes.is_gemma else nn.silu(gate)
        hidden = gate * dense(self.sizes.hidden, "up")(x)
        return dense(self.sizes.features, "down")(hidden)


class LanguageModel(nn.Module):
    """A decoder-only language model; takes and returns what that of `decoder_nnx` does."""

    sizes: Decoder

    @nn.compact
    def __call__(
        self, tokens: jax.Array, positions: jax.Array, mask: jax.Array, cache: Cache
    ) -> tuple[jax.Array, list[LayerCache]]:
        sizes = self.sizes
        embed = nn.Embed(sizes.vocabulary, sizes.features, name="embed")
        x = embed(tokens) * (sizes.features**0.5 if sizes.is_gemma else 1.0)
        updated = []
        for i, of_layer in enumerate(cache):
            y, of_layer = Attention(sizes, i)(Norm(sizes.is_gemma)(x), positions, mask, of_layer)
            x += Norm(sizes.is_gemma)(y) if sizes.is_gemma else y
            y = MLP(sizes)(Norm(sizes.is_gemma)(x))
            x += Norm(sizes.is_gemma)(y) if sizes.is_gemma else y
            updated.append(of_layer)
        x = Norm(sizes.is_gemma)(x)
        if sizes.is_gemma:
            return embed.attend(x), updated
        return nn.Dense(sizes.vocabulary, use_bias=False, name="head")(x), updated


def network(sizes: Decoder) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function that makes parameters, and the model as a function of parameters and inputs."""
    model = LanguageModel(sizes)

    def variables(key: Any, *inputs: Any) -> Any:
        one = jnp.zeros(1, jnp.int32)
        return model.init(key, one[None], one, jnp.zeros((1, 1, 1, 1)), sizes.empty(1))

    return variables, model.apply


def decoder(sizes: Decoder, seed: int) -> tuple[Callable[..., Any], Any]:
    """The model as a function of parameters and inputs, and random parameters."""
    variables, step = network(sizes)
    return step, scaled(random_parameters(variables, seed=seed), sizes)
