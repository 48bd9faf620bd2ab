"""Blocks of newer networks, and modules of `flax.nnx`."""

from collections.abc import Iterator

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from flax import nnx

from harnesses.layers.layer import Layer, applied, nnx_applied, normal

_X = normal(3, 8)
_SEQUENCES = normal(2, 5, 8)
_IMAGES = normal(2, 8, 8, 4)
_TOKENS = np.array([[1, 0, 3], [2, 2, 5]], np.int32)


def layers() -> Iterator[Layer]:
    """Feed-forward blocks, attention of groups and with biases, convolutions, nnx modules."""
    yield from _gated()
    yield from _attention()
    yield from _convolutions()
    yield from _modules()


def _gated() -> Iterator[Layer]:
    gate, up, down = normal(8, 12, seed=1), normal(8, 12, seed=2), normal(12, 8, seed=3)
    for name, act, by_hand in (
        ("SwiGLU", jax.nn.silu, tf.nn.silu),
        ("GeGLU", lambda x: jax.nn.gelu(x, approximate=False), tf.nn.gelu),
        ("ReGLU", jax.nn.relu, tf.nn.relu),
    ):
        yield Layer(
            name,
            lambda x, act=act: (act(x @ gate) * (x @ up)) @ down,
            lambda x, act=by_hand: tf.matmul(act(tf.matmul(x, gate)) * tf.matmul(x, up), down),
            (_X,),
        )
    fun, _ = applied(nn.PReLU(), _X)
    slope = fun(np.full((1,), -1, np.float32)).item() * -1
    yield Layer(
        "PReLU",
        fun,
        lambda x: tf.nn.leaky_relu(x, slope),
        (_X,),
    )
    yield Layer(
        "squared relu",
        lambda x: jnp.square(jax.nn.relu(x)),
        lambda x: tf.square(tf.nn.relu(x)),
        (_X,),
    )
    yield Layer(
        "soft cap",
        lambda x: 30 * jnp.tanh(x / 30),
        lambda x: 30 * tf.tanh(x / 30),
        (_X,),
    )
    yield Layer("logaddexp", jnp.logaddexp, _logaddexp, (_X, normal(3, 8, seed=1)))
    yield Layer(
        "nan_to_num",
        lambda x: jnp.nan_to_num(x, posinf=9.0, neginf=-9.0),
        _without_nan,
        (_X,),
    )


def _logaddexp(x, y):
    return tf.maximum(x, y) + tf.math.log1p(tf.exp(-tf.abs(x - y)))


def _without_nan(x):
    x = tf.where(tf.math.is_nan(x), 0.0, x)
    x = tf.where(tf.equal(x, np.inf), 9.0, x)
    return tf.where(tf.equal(x, -np.inf), -9.0, x)


def _attention() -> Iterator[Layer]:
    q, k, v = normal(2, 5, 4, 8), normal(2, 5, 2, 8, seed=1), normal(2, 5, 2, 8, seed=2)
    yield Layer("attention of groups", jax.nn.dot_product_attention, _of_groups, (q, k, v))
    bias = normal(1, 4, 5, 5)
    k, v = normal(2, 5, 4, 8, seed=1), normal(2, 5, 4, 8, seed=2)
    yield Layer(
        "attention with a bias",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, bias),
        lambda q, k, v: _attend(q, k, v, bias),
        (q, k, v),
    )
    one = normal(2, 1, 4, 8)
    yield Layer("attention of one query", jax.nn.dot_product_attention, _attend, (one, k, v))
    yield Layer(
        "sum of a row and its position",
        lambda x: x + jnp.arange(5, dtype=np.float32)[:, None],
        lambda x: x + np.arange(5, dtype=np.float32)[:, None],
        (_SEQUENCES,),
    )


def _attend(q, k, v, bias=None):
    q, k, v = (tf.transpose(x, (0, 2, 1, 3)) for x in (q, k, v))
    logits = tf.matmul(q, k, transpose_b=True) * np.float32(1 / np.sqrt(8))
    logits = logits if bias is None else logits + bias
    return tf.transpose(tf.matmul(tf.nn.softmax(logits), v), (0, 2, 1, 3))


def _of_groups(q, k, v):
    q = tf.transpose(tf.reshape(q, (2, 5, 2, 2, 8)), (0, 2, 3, 1, 4))
    k, v = (tf.transpose(x, (0, 2, 1, 3))[:, :, None] for x in (k, v))
    logits = tf.matmul(q, k, transpose_b=True) * np.float32(1 / np.sqrt(8))
    y = tf.matmul(tf.nn.softmax(logits), v)
    return tf.reshape(tf.transpose(y, (0, 3, 1, 2, 4)), (2, 5, 4, 8))


def _convolutions() -> Iterator[Layer]:
    fun, variables = applied(nn.Conv(6, (3,), padding="CAUSAL"), _SEQUENCES)
    causal = variables["params"]
    yield Layer(
        "causal convolution",
        fun,
        lambda x: (
            tf.nn.conv1d(tf.pad(x, ((0, 0), (2, 0), (0, 0))), causal["kernel"], 1, "VALID")
            + causal["bias"]
        ),
        (_SEQUENCES,),
    )
    embed, variables = applied(nn.Conv(8, (4, 4), (4, 4), padding="VALID"), _IMAGES)
    patches = variables["params"]
    yield Layer(
        "patches",
        lambda x: embed(x).reshape(2, 4, 8),
        lambda x: tf.reshape(
            tf.nn.conv2d(x, patches["kernel"], 4, "VALID") + patches["bias"], (2, 4, 8)
        ),
        (_IMAGES,),
    )
    fun, variables = applied(nn.ConvTranspose(6, (2, 2), (2, 2), padding="VALID"), _IMAGES)
    up = variables["params"]
    yield Layer(
        "transposed convolution, valid",
        fun,
        lambda x: (
            tf.nn.conv2d_transpose(
                x,
                np.ascontiguousarray(up["kernel"][::-1, ::-1].swapaxes(2, 3)),
                (2, 16, 16, 6),
                2,
                "VALID",
            )
            + up["bias"]
        ),
        (_IMAGES,),
    )
    yield Layer(
        "mean and maximum of channels",
        lambda x: jnp.concatenate([x.mean(-1, keepdims=True), x.max(-1, keepdims=True)], -1),
        lambda x: tf.concat(
            [tf.reduce_mean(x, -1, keepdims=True), tf.reduce_max(x, -1, keepdims=True)], -1
        ),
        (_IMAGES,),
    )


def _modules() -> Iterator[Layer]:
    fun, params = nnx_applied(lambda rngs: nnx.LayerNorm(8, rngs=rngs))
    yield Layer("nnx.LayerNorm", fun, lambda x: _normalized(x, params), (_SEQUENCES,))
    fun, table = nnx_applied(lambda rngs: nnx.Embed(7, 8, rngs=rngs))
    yield Layer("nnx.Embed", fun, lambda i: _rows(table["embedding"], i), (_TOKENS,))
    fun, general = nnx_applied(lambda rngs: nnx.LinearGeneral(8, (2, 3), rngs=rngs))
    yield Layer(
        "nnx.LinearGeneral",
        fun,
        lambda x: tf.reshape(
            tf.matmul(x, general["kernel"].reshape(8, 6)) + general["bias"].reshape(-1),
            (3, 2, 3),
        ),
        (_X,),
    )
    fun, einsum = nnx_applied(lambda rngs: nnx.Einsum("bi,ij->bj", (8, 6), (6,), rngs=rngs))
    yield Layer(
        "nnx.Einsum",
        fun,
        lambda x: tf.matmul(x, einsum["kernel"]) + einsum["bias"],
        (_X,),
    )
    fun, cell = nnx_applied(lambda rngs: nnx.OptimizedLSTMCell(8, 6, rngs=rngs))
    c, h = normal(3, 6, seed=1), normal(3, 6, seed=2)
    yield Layer(
        "nnx.OptimizedLSTMCell",
        lambda c, h, x: fun((c, h), x)[0],
        lambda c, h, x: _lstm(cell, c, h, x),
        (c, h, _X),
    )


def _normalized(x, params):
    """A layer norm with the variance E[x^2] - E[x]^2 of Flax, which may round below zero."""
    mean = tf.reduce_mean(x, -1, keepdims=True)
    square = tf.reduce_mean(tf.square(x), -1, keepdims=True)
    variance = tf.nn.relu(square - tf.square(mean))
    return (x - mean) * (tf.math.rsqrt(variance + 1e-6) * params["scale"]) + params["bias"]


def _rows(table, i):
    """Rows that are NaN out of bounds, as `jnp.take` has them."""
    size = table.shape[0]
    i = tf.where(i < 0, i + size, i)
    inside = tf.clip_by_value(i, 0, size - 1)
    return tf.where((inside == i)[..., None], tf.gather(table, inside), np.float32(np.nan))


def _lstm(cell, c, h, x):
    dense_i, dense_h = cell["dense_i"], cell["dense_h"]
    gates = tf.matmul(x, dense_i["kernel"]) + (tf.matmul(h, dense_h["kernel"]) + dense_h["bias"])
    i, f, g, o = tf.split(gates, 4, 1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return c, tf.sigmoid(o) * tf.tanh(c)
