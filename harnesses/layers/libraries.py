"""Layers as people write them for Equinox, Haiku and models that come from PyTorch."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from harnesses.layers.layer import Layer, normal

_FIRST = normal(2, 4, 8, 8)  # Images, channels first.
_IMAGES = normal(2, 8, 8, 4)
_SEQUENCES = normal(2, 5, 16)
_Q, _K, _V = (normal(2, 4, 5, 8, seed=seed) for seed in range(3))
_KERNEL, _SCALE, _BIAS = normal(3, 3, 4, 6), np.abs(normal(6)) + 0.5, normal(6)
_PADS = [(0, 0), (1, 1), (1, 1), (0, 0)]


def _channels_last(x):
    return tf.transpose(x, (0, 2, 3, 1))


def _channels_first(x):
    return tf.transpose(x, (0, 3, 1, 2))


def _convolved(x):
    return lax.conv_general_dilated(
        x, jnp.asarray(_KERNEL), (1, 1), "SAME", dimension_numbers=("NCHW", "HWIO", "NCHW")
    )


def _normalized(x):
    """A batch norm of channels that come first, as `eqx.nn.BatchNorm` writes it."""
    mean, scale = (value[:, None, None] for value in (_BIAS, _SCALE))
    return (x - mean) / jnp.sqrt(scale + 1e-3) * scale + mean


# The same as a factor of the weights and a bias.
_FACTOR = (_SCALE / np.sqrt(_SCALE + 1e-3)).astype(np.float32)
_SHIFT = (_BIAS - _BIAS * _FACTOR).astype(np.float32)


def _conv(x, kernel, bias, padding="SAME"):
    return tf.nn.conv2d(x, kernel, 1, padding) + bias


def _convolutions() -> Iterator[Layer]:
    yield Layer(
        "convolution, bias and relu, features first",
        lambda x: jax.nn.relu(_convolved(x) + _BIAS[:, None, None]),
        lambda x: _channels_first(tf.nn.relu(_conv(_channels_last(x), _KERNEL, _BIAS))),
        (_FIRST,),
    )
    yield Layer(
        "convolution, batch norm and relu, features first",
        lambda x: jax.nn.relu(_normalized(_convolved(x))),
        lambda x: _channels_first(tf.nn.relu(_conv(_channels_last(x), _KERNEL * _FACTOR, _SHIFT))),
        (_FIRST,),
    )
    kernel, bias = np.ascontiguousarray(_KERNEL.transpose(3, 2, 0, 1)), _BIAS[:, None, None]

    def of_image(x):
        y = lax.conv_general_dilated(x[None], jnp.asarray(kernel), (1, 1), ((1, 1), (1, 1)))
        return jnp.squeeze(y, 0) + bias

    yield Layer(
        "vmap of eqx.nn.Conv2d",
        jax.vmap(of_image),
        lambda x: _channels_first(_conv(_channels_last(x), _KERNEL, _BIAS)),
        (_FIRST,),
    )
    yield Layer(
        "vmap of eqx.nn.Conv2d and BatchNorm",
        jax.vmap(lambda x: _normalized(of_image(x))),
        lambda x: _channels_first(
            _conv(_channels_last(x), _KERNEL * _FACTOR, _BIAS * _FACTOR + _SHIFT)
        ),
        (_FIRST,),
    )
    yield Layer(
        "instance norm, features first",
        lambda x: (
            (x - x.mean((2, 3), keepdims=True)) * lax.rsqrt(x.var((2, 3), keepdims=True) + 1e-5)
        ),
        lambda x: _standardized(x, (2, 3)),
        (_FIRST,),
    )
    yield Layer(
        "convolution and a factor",
        lambda x: (
            lax.conv_general_dilated(
                x, jnp.asarray(_KERNEL), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            * _SCALE
        ),
        lambda x: tf.nn.conv2d(x, _KERNEL * _SCALE, 1, "SAME"),
        (_IMAGES,),
    )


def _standardized(x, axes):
    mean = tf.reduce_mean(x, axes, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axes, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def _norms() -> Iterator[Layer]:
    scale, offset = normal(16, seed=1), normal(16, seed=2)

    def by_equinox(x):
        mean, variance = x.mean(keepdims=True), jnp.maximum(0.0, x.var(keepdims=True))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset

    def by_haiku(x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        factor = jnp.broadcast_to(scale, x.shape) * lax.rsqrt(variance + 1e-5)
        return factor * (x - mean) + jnp.broadcast_to(offset, x.shape)

    def by_hand(x):
        return _standardized(x, -1) * scale + offset

    yield Layer("vmap of eqx.nn.LayerNorm", jax.vmap(jax.vmap(by_equinox)), by_hand, (_SEQUENCES,))
    yield Layer("hk.LayerNorm", by_haiku, by_hand, (_SEQUENCES,))
    weights = normal(8, 16)
    yield Layer(
        "vmap of eqx.nn.Linear",
        jax.vmap(lambda x: weights @ x + weights[:, 0]),
        lambda x: tf.matmul(x, weights.T) + weights[:, 0],
        (_SEQUENCES[0],),
    )
    yield Layer(
        "RMS norm with one more than a scale",
        lambda x: x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * (1 + scale),
        lambda x: (
            x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * (1 + scale)
        ),
        (_SEQUENCES,),
    )
    yield Layer(
        "mean and standard deviation of all",
        lambda x: (x - x.mean()) / x.std(),
        _standardized_by_all,
        (_SEQUENCES,),
    )


def _standardized_by_all(x):
    mean = tf.reduce_mean(x)
    return (x - mean) / tf.sqrt(tf.reduce_mean(tf.math.squared_difference(x, mean)))


def _attention() -> Iterator[Layer]:
    yield Layer(
        "attention, heads first",
        lambda q, k, v: jax.nn.softmax(q @ k.swapaxes(-1, -2) / jnp.sqrt(8.0)) @ v,
        lambda q, k, v: tf.matmul(
            tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * np.float32(8**-0.5)), v
        ),
        (_Q, _K, _V),
    )
    inward, outward = normal(16, 48), normal(16, 16)

    def by_nano_gpt(x):
        parts = jnp.split(x @ inward, 3, -1)
        q, k, v = (part.reshape(2, 5, 4, 4).transpose(0, 2, 1, 3) for part in parts)
        scores = q @ k.swapaxes(-1, -2) * 0.5
        scores = jnp.where(jnp.tril(jnp.ones((5, 5))) == 0, -jnp.inf, scores)
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3)
        return y.reshape(2, 5, 16) @ outward

    def by_hand(x):
        parts = tf.split(tf.matmul(tf.reshape(x, (10, 16)), inward), 3, -1)
        q, k, v = (tf.transpose(tf.reshape(y, (2, 5, 4, 4)), (0, 2, 1, 3)) for y in parts)
        scores = tf.matmul(q, k, transpose_b=True) * 0.5
        scores = tf.where(np.tri(5, dtype=bool), scores, np.float32(-np.inf))
        y = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), (0, 2, 1, 3))
        return tf.reshape(tf.matmul(tf.reshape(y, (10, 16)), outward), (2, 5, 16))

    yield Layer("attention of nanoGPT", by_nano_gpt, by_hand, (_SEQUENCES,))

    def squared(x):
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6)

    def normalized(x):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

    yield Layer(
        "attention of normalized queries",
        lambda q, k, v: jax.nn.softmax(normalized(q) @ normalized(k).swapaxes(-1, -2)) @ v,
        lambda q, k, v: tf.matmul(
            tf.nn.softmax(tf.matmul(squared(q), squared(k), transpose_b=True)), v
        ),
        (_Q, _K, _V),
    )


def _activations() -> Iterator[Layer]:
    x = normal(4, 6)
    yield Layer("sigmoid by a quotient", lambda x: 1 / (1 + jnp.exp(-x)), tf.sigmoid, (x,))
    yield Layer(
        "leaky relu by a maximum",
        lambda x: jnp.maximum(x, 0.1 * x),
        lambda x: tf.nn.leaky_relu(x, 0.1),
        (x,),
    )
    for name, mapped, op in (
        ("elu", jax.nn.elu, tf.nn.elu),
        ("hard_tanh", jax.nn.hard_tanh, lambda x: tf.clip_by_value(x, -1, 1)),
        ("logsumexp", lambda x: jax.nn.logsumexp(x, -1), lambda x: tf.reduce_logsumexp(x, -1)),
    ):
        yield Layer(f"vmap of {name}", jax.vmap(mapped), op, (x,))


def layers() -> Iterator[Layer]:
    """Layers of single examples that are mapped, with channels first, and written by hand."""
    yield from _convolutions()
    yield from _norms()
    yield from _attention()
    yield from _activations()
