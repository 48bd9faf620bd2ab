"""Attention, with masks and caches."""

from collections.abc import Iterator

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from flax import nnx

from harnesses.layers.layer import Layer, applied, nnx_applied, normal

_Q, _K, _V = (normal(2, 5, 4, 8, seed=seed) for seed in range(3))
_CAUSAL = np.tri(5, dtype=bool)
_SEQUENCES = normal(2, 5, 16)
_LOWEST = np.finfo(np.float32).min


def _attend(q, k, v, mask=None, lowest=_LOWEST):
    """Attention of heads that are the last axis but one."""
    q = tf.transpose(q * np.float32(1 / np.sqrt(q.shape[-1])), (0, 2, 1, 3))
    logits = tf.matmul(q, tf.transpose(k, (0, 2, 3, 1)))
    if mask is not None:
        logits = tf.where(mask, logits, lowest)
    return tf.transpose(
        tf.matmul(tf.nn.softmax(logits), tf.transpose(v, (0, 2, 1, 3))), (0, 2, 1, 3)
    )


def _projected(x, params):
    heads, size = params["bias"].shape
    kernel = params["kernel"].reshape(-1, heads * size)
    return (
        tf.reshape(tf.matmul(tf.reshape(x, (10, -1)), kernel), (2, 5, heads, size)) + params["bias"]
    )


def _multi_head(params, mask=None):
    def by_hand(x):
        q, k, v = (_projected(x, params[name]) for name in ("query", "key", "value"))
        y = tf.reshape(_attend(q, k, v, mask), (10, -1))
        out = params["out"]
        y = tf.matmul(y, out["kernel"].reshape(y.shape[-1], -1)) + out["bias"]
        return tf.reshape(y, (2, 5, -1))

    return by_hand


def _decoding() -> Layer:
    """One token of `nnx.MultiHeadAttention`, which is written to the caches of keys and values."""
    module = nnx.MultiHeadAttention(4, 16, decode=True, rngs=nnx.Rngs(0))
    module.init_cache((2, 6, 16))
    graph, params, cache, rest = nnx.split(module, nnx.Param, nnx.Cache, ...)
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda x: rng.uniform(0.1, 0.6, x.shape).astype(x.dtype), params)
    weights = nnx.to_pure_dict(params)

    def fun(x, keys, values, index):
        # The module adds to the index in place, which NumPy would do to the argument.
        given = {"cache_index": jnp.asarray(index), "cached_key": keys, "cached_value": values}
        nnx.replace_by_pure_dict(cache, given)
        merged = nnx.merge(graph, params, cache, rest)
        y = merged(x)
        kept = nnx.to_pure_dict(nnx.state(merged, nnx.Cache))
        return y, kept["cached_key"], kept["cached_value"], kept["cache_index"]

    def projected(x, of):
        kernel = of["kernel"].reshape(16, 16)
        return tf.reshape(tf.matmul(x, kernel) + of["bias"].reshape(16), (2, 1, 4, 4))

    def by_hand(x, keys, values, index):
        x = tf.reshape(x, (2, 16))
        q, k, v = (projected(x, weights[name]) for name in ("query", "key", "value"))
        places = np.arange(6, dtype=np.int32)
        is_new = tf.equal(places[:, None, None], index)
        keys, values = tf.where(is_new, k, keys), tf.where(is_new, v, values)
        y = tf.reshape(_attend(q, keys, values, places <= index), (2, 16))
        y = tf.matmul(y, weights["out"]["kernel"].reshape(16, 16)) + weights["out"]["bias"]
        return tf.reshape(y, (2, 1, 16)), keys, values, index + 1

    caches = [normal(2, 6, 4, 4, seed=seed) for seed in range(2)]
    args = (normal(2, 1, 16), *caches, np.array(3, np.int32))
    return Layer("decoding with nnx.MultiHeadAttention", fun, by_hand, args)


def layers() -> Iterator[Layer]:
    """Attention of `jax.nn` and of Flax."""
    yield Layer("attention", jax.nn.dot_product_attention, _attend, (_Q, _K, _V))
    yield Layer(
        "causal attention",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: _attend(q, k, v, _CAUSAL, np.float32(-0.7 * np.finfo(np.float32).max)),
        (_Q, _K, _V),
    )
    yield Layer("nn.attention", nn.dot_product_attention, _attend, (_Q, _K, _V))
    mask = np.broadcast_to(_CAUSAL, (2, 1, 5, 5))
    yield Layer(
        "nn.attention with a mask",
        lambda q, k, v, mask: nn.dot_product_attention(q, k, v, mask=mask),
        _attend,
        (_Q, _K, _V, mask),
    )
    fun, variables = applied(nn.SelfAttention(4), _SEQUENCES)
    yield Layer("nn.SelfAttention", fun, _multi_head(variables["params"]), (_SEQUENCES,))
    fun, params = nnx_applied(lambda rngs: nnx.MultiHeadAttention(4, 16, decode=False, rngs=rngs))
    yield Layer("nnx.MultiHeadAttention", fun, _multi_head(params), (_SEQUENCES,))
    yield _decoding()
    yield Layer(
        "mask of padding",
        lambda present: nn.make_attention_mask(present, present, dtype=bool),
        lambda present: tf.logical_and(present[:, None, :, None], present[:, None, None, :]),
        (np.array([[True] * 3 + [False] * 2, [True] * 5]),),
    )
    fun, variables = applied(nn.MultiHeadDotProductAttention(4), _SEQUENCES)
    yield Layer("multi-head attention", fun, _multi_head(variables["params"]), (_SEQUENCES,))
    yield Layer(
        "causal mask",
        lambda x: jnp.where(jnp.tril(jnp.ones((5, 5), bool)), x, -1e9),
        lambda x: tf.where(_CAUSAL, x, -1e9),
        (normal(2, 5, 5),),
    )
    angles = np.arange(5)[:, None] / 10 ** np.arange(4)
    sin, cos = (f(angles).astype(np.float32)[:, None] for f in (np.sin, np.cos))

    def rotary(x):
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def rotary_by_hand(x):
        a, b = tf.split(x, 2, -1)
        return tf.concat([a * cos - b * sin, b * cos + a * sin], -1)

    yield Layer("rotary embedding", rotary, rotary_by_hand, (_Q,))
    yield from _masked()
    yield from _rotated(cos, sin)
    yield Layer(
        "cache update",
        lambda cache, x: jax.lax.dynamic_update_slice(cache, x, (0, 3, 0)),
        lambda cache, x: tf.concat([cache[:, :3], x, cache[:, 4:]], 1),
        (normal(2, 6, 8), normal(2, 1, 8)),
    )


# What JAX puts in the place of logits that a mask excludes.
_EXCLUDED = np.float32(-0.7 * np.finfo(np.float32).max)


def _masked() -> Iterator[Layer]:
    mask = np.broadcast_to(_CAUSAL, (2, 1, 5, 5))
    yield Layer(
        "attention with a mask",
        lambda q, k, v, mask: jax.nn.dot_product_attention(q, k, v, mask=mask),
        lambda q, k, v, mask: _attend(q, k, v, mask, _EXCLUDED),
        (_Q, _K, _V, mask),
    )
    distances = np.arange(5)[:, None] - np.arange(5)
    yield Layer(
        "attention in a local window",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, local_window_size=1),
        lambda q, k, v: _attend(q, k, v, np.abs(distances) <= 1, _EXCLUDED),
        (_Q, _K, _V),
    )
    yield Layer(
        "attention to known lengths",
        lambda q, k, v, n: jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=n),
        lambda q, k, v, n: _attend(q, k, v, np.arange(5) < tf.reshape(n, (2, 1, 1, 1)), _EXCLUDED),
        (_Q, _K, _V, np.array([3, 5], np.int32)),
    )


def _rotated(cos, sin) -> Iterator[Layer]:
    """Rotary embeddings, as they are written with whole arrays."""
    all_cos, all_sin = (np.concatenate([x, x], -1) for x in (cos, sin))

    def by_halves(x):
        a, b = jnp.split(x, 2, -1)
        return x * all_cos + jnp.concatenate([-b, a], -1) * all_sin

    def by_halves_by_hand(x):
        a, b = tf.split(x, 2, -1)
        return x * all_cos + tf.concat([-b, a], -1) * all_sin

    yield Layer("rotary embedding by halves", by_halves, by_halves_by_hand, (_Q,))

    def of_pairs(x):
        a, b = x[..., ::2], x[..., 1::2]
        return jnp.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)

    def of_pairs_by_hand(x):
        a, b = x[..., ::2], x[..., 1::2]
        return tf.reshape(tf.stack([a * cos - b * sin, b * cos + a * sin], -1), x.shape)

    yield Layer("rotary embedding of pairs", of_pairs, of_pairs_by_hand, (_Q,))
