"""A decoder-only language model in flax nnx; see `decoder_layers`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

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


class Norm(nnx.Module):
    """RMSNorm; that of Gemma adds one to its scale."""

    def __init__(self, features: int, offset: bool):
        self.scale = nnx.Param((jnp.zeros if offset else jnp.ones)(features))
        self.offset = float(offset)

    def __call__(self, x: jax.Array) -> jax.Array:
        return normalize(x, self.offset + self.scale[...])


class Attention(nnx.Module):
    """Grouped-query attention with normalized queries and keys."""

    def __init__(self, sizes: Decoder, layer: int, rngs: nnx.Rngs):
        def linear(heads: int) -> nnx.Linear:
            outputs = heads * sizes.head_features
            return nnx.Linear(sizes.features, outputs, use_bias=False, rngs=rngs)

        self.query, self.key, self.value = map(
            linear, (sizes.heads, sizes.key_heads, sizes.key_heads)
        )
        self.query_norm = Norm(sizes.head_features, sizes.is_gemma)
        self.key_norm = Norm(sizes.head_features, sizes.is_gemma)
        inner = sizes.heads * sizes.head_features
        self.out = nnx.Linear(inner, sizes.features, use_bias=False, rngs=rngs)
        self.features = sizes.head_features
        self.window = sizes.window if sizes.is_local(layer) else None
        self.base = 1e4 if sizes.is_local(layer) else sizes.base

    def __call__(
        self, x: jax.Array, positions: jax.Array, mask: jax.Array, cache: LayerCache
    ) -> tuple[jax.Array, LayerCache]:
        def heads(y: jax.Array) -> jax.Array:
            return y.reshape(*y.shape[:2], -1, self.features)

        query = rotate(self.query_norm(heads(self.query(x))), positions, self.base)
        key = rotate(self.key_norm(heads(self.key(x))), positions, self.base)
        new = key.swapaxes(1, 2), heads(self.value(x)).swapaxes(1, 2)
        keys, values = (written(*pair, positions[0]) for pair in zip(cache, new, strict=True))
        if self.window is not None:
            mask = windowed(mask, positions, self.window)
        attended = attend(query * self.features**-0.5, (keys, values), mask)
        return self.out(attended), (keys, values)


class MLP(nnx.Module):
    """A gated MLP."""

    def __init__(self, sizes: Decoder, rngs: nnx.Rngs):
        self.gate = nnx.Linear(sizes.features, sizes.hidden, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(sizes.features, sizes.hidden, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(sizes.hidden, sizes.features, use_bias=False, rngs=rngs)
        self.is_gemma = sizes.is_gemma

    def __call__(self, x: jax.Array) -> jax.Array:
        gate = nnx.gelu(self.gate(x)) if self.is_gemma else nnx.silu(self.gate(x))
        return self.down(gate * self.up(x))


class Block(nnx.Module):
    """Attention and MLP, each added to its input."""

    def __init__(self, sizes: Decoder, layer: int, rngs: nnx.Rngs):
        self.attention = Attention(sizes, layer, rngs)
        self.mlp = MLP(sizes, rngs)
        count = 4 if sizes.is_gemma else 2
        self.norms = nnx.List([Norm(sizes.features, sizes.is_gemma) for _ in range(count)])

    def __call__(
        self, x: jax.Array, positions: jax.Array, mask: jax.Array, cache: LayerCache
    ) -> tuple[jax.Array, LayerCache]:
        before_attention, before_mlp, *after = self.norms
        y, cache = self.attention(before_attention(x), positions, mask, cache)
        x = x + (after[0](y) if after else y)
        y = self.mlp(before_mlp(x))
        return x + (after[1](y) if after else y), cache


class LanguageModel(nnx.Module):
    """A decoder-only language model."""

    def __init__(self, sizes: Decoder, rngs: nnx.Rngs):
        self.embed = nnx.Embed(sizes.vocabulary, sizes.features, rngs=rngs)
        self.blocks = nnx.List([Block(sizes, i, rngs) for i in range(sizes.layers)])
        self.norm = Norm(sizes.features, sizes.is_gemma)
        self.scale = sizes.features**0.5 if sizes.is_gemma else 1.0
        if not sizes.is_gemma:
            self.head = nnx.Linear(sizes.features, sizes.vocabulary, use_bias=False, rngs=rngs)
        self.is_gemma = sizes.is_gemma

    def __call__(
        self, tokens: jax.Array, positions: jax.Array, mask: jax.Array, cache: Cache
    ) -> tuple[jax.Array, list[LayerCache]]:
        """Logits of the token after each token, and the cache with the tokens.

        Args:
          tokens: int32 [1, length].
          positions: int32 [length]; the first is that of the cache where they are written.
          mask: float32 [1, 1, length, capacity], added to the scores of attention.
          cache: keys and values of each layer.
        """
        x = self.embed(tokens) * self.scale
        updated = []
        for block, of_layer in zip(self.blocks, cache, strict=True):
            x, of_layer = block(x, positions, mask, of_layer)
            updated.append(of_layer)
        x = self.norm(x)
        return self.embed.attend(x) if self.is_gemma else self.head(x), updated


def network(sizes: Decoder) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function that makes parameters, and the model as a function of parameters and inputs."""

    def variables(_: Any, *inputs: Any) -> Any:
        return nnx.to_pure_dict(nnx.split(LanguageModel(sizes, nnx.Rngs(0)))[1])

    graph = nnx.graphdef(nnx.eval_shape(lambda: LanguageModel(sizes, nnx.Rngs(0))))

    def step(params: Any, tokens: Any, positions: Any, mask: Any, cache: Cache) -> Any:
        return nnx.merge(graph, params)(tokens, positions, mask, cache)

    return variables, step


def decoder(sizes: Decoder, seed: int) -> tuple[Callable[..., Any], Any]:
    """The model as a function of parameters and inputs, and random parameters."""
    variables, step = network(sizes)
    return step, scaled(random_parameters(variables, seed=seed), sizes)
