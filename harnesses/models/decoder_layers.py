"""The parts of decoder-only language models, as functions of arrays.

The cache of a layer has room for a number of tokens, its capacity. Keys and values are
[1, key heads, capacity, features of a head], so that attention is a batched product without
transposes, and one step writes contiguous numbers.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# Keys and values of a layer, and those of all layers.
LayerCache = tuple[jax.Array, jax.Array]
Cache = Sequence[LayerCache]


@dataclasses.dataclass(frozen=True)
class Decoder:
    """The sizes of a decoder-only model, and the options that differ between Gemma 3 and Qwen 3.

    Attributes:
      vocabulary: the number of tokens.
      layers: how many blocks of attention and gated MLP.
      features: the features of a token between blocks.
      heads: the heads of queries.
      key_heads: those of keys and values; each serves as many heads of queries.
      head_features: the features of a head.
      hidden: the features inside of the gated MLP.
      window: how many tokens a local layer sees, its own included; None if all layers are global.
      period: of so many layers the last one is global, if there is a window.
      base: the base of the rotary wavelengths of global layers; local ones have 10 000.
      is_gemma: whether embeddings are scaled and give the logits, too, norms follow blocks and add
        one to their scales, and the gate is a GELU instead of a SiLU.
    """

    vocabulary: int
    layers: int
    features: int
    heads: int
    key_heads: int
    head_features: int
    hidden: int
    window: int | None = None
    period: int = 6
    base: float = 1e6
    is_gemma: bool = False

    def is_local(self, layer: int) -> bool:
        """Whether a layer sees a window alone."""
        return self.window is not None and (layer + 1) % self.period != 0

    def empty(self, capacity: int) -> list[LayerCache]:
        """Caches without tokens."""
        zeros = jnp.zeros((1, self.key_heads, capacity, self.head_features))
        return [(zeros, zeros)] * self.layers


# Small relatives of Gemma 3 270M and of Qwen 3 0.6B.
GEMMA = Decoder(256, 4, 64, 4, 1, 32, 192, window=16, period=2, is_gemma=True)
QWEN = Decoder(256, 3, 64, 4, 2, 16, 160)


def normalize(x: jax.Array, scale: jax.Array) -> jax.Array:
    """RMSNorm over the last dimension."""
    return x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6) * scale


def rotate(x: jax.Array, positions: jax.Array, base: float) -> jax.Array:
    """Rotary embeddings (RoFormer, arXiv:2104.09864) of [1, length, heads, features]."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-jnp.arange(half) / half)
    sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def written(kept: jax.Array, new: jax.Array, position: jax.Array) -> jax.Array:
    """A cache with new tokens, the first of them at a position.

    A prefill of fewer tokens than it has room for ends with padding. That may reach beyond the
    capacity, where `dynamic_update_slice` would move all of it towards the front: then the new
    tokens are moved within the slice instead, and what was before them is kept.

    Args:
      kept: [1, key heads, capacity, features].
      new: [1, key heads, length, features].
      position: int32, a scalar.
    """
    length, capacity = new.shape[2], kept.shape[2]
    if length != 1:  # It may be symbolic.
        begin = jnp.minimum(position, capacity - length)
        before = lax.dynamic_slice_in_dim(kept, begin, length, axis=2)
        index = jnp.arange(length) - (position - begin)
        moved = jnp.take(new, jnp.maximum(index, 0), axis=2)
        new, position = jnp.where(index[:, None] < 0, before, moved), begin
    return lax.dynamic_update_slice_in_dim(kept, new, position, axis=2)


def windowed(mask: jax.Array, positions: jax.Array, window: int) -> jax.Array:
    """A mask, [1, 1, length, capacity], without tokens before a window that ends at each."""
    distance = positions[:, None] - jnp.arange(mask.shape[-1])
    return jnp.where(distance < window, mask, jnp.finfo(mask.dtype).min / 2)


def attend(query: jax.Array, cache: LayerCache, mask: jax.Array) -> jax.Array:
    """Attention of [1, length, heads, features] to a cache; each of its heads serves a group.

    Args:
      query: the queries, scaled.
      cache: keys and values.
      mask: added to the scores, [1, 1, length, capacity].
    """
    keys, values = cache
    _, length, heads, features = query.shape
    groups = heads // keys.shape[1]
    grouped = query.swapaxes(1, 2).reshape(1, -1, groups * length, features)
    scores = grouped @ keys.swapaxes(2, 3)
    scores = scores.reshape(1, -1, groups, length, keys.shape[2]) + mask[:, :, None]
    weights = jax.nn.softmax(scores).reshape(1, -1, groups * length, keys.shape[2])
    attended = (weights @ values).reshape(1, heads, length, features)
    return attended.swapaxes(1, 2).reshape(1, length, -1)


def scaled(params: Any, sizes: Decoder) -> Any:
    """Parameters with embeddings as small as trained ones, so that blocks matter beside them."""

    def scale(path: Any, x: np.ndarray) -> np.ndarray:
        is_embedding = getattr(path[-1], "key", None) == "embedding"
        return x * np.float32(sizes.features**-0.5) if is_embedding else x

    return jax.tree_util.tree_map_with_path(scale, params)
