"""Losses and update steps of `optax`."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tensorflow as tf

from harnesses.layers.layer import Layer, normal

_LOGITS = normal(4, 6)
_CLASSES = np.array([0, 5, 2, 3], np.int32)
_LABELS = np.full((4, 6), 1 / 6, np.float32)
_BITS = (_LOGITS > 0.2).astype(np.float32)
_SMOOTHING = 0.1


def layers() -> Iterator[Layer]:
    """Losses, smoothed labels, and steps of optimizers."""
    yield Layer(
        "softmax cross entropy",
        optax.softmax_cross_entropy,
        lambda x, y: -tf.reduce_sum(y * tf.nn.log_softmax(x), -1),
        (_LOGITS, _LABELS),
    )
    yield Layer(
        "softmax cross entropy of classes",
        optax.softmax_cross_entropy_with_integer_labels,
        _of_classes,
        (_LOGITS, _CLASSES),
    )
    yield Layer(
        "sigmoid cross entropy",
        optax.sigmoid_binary_cross_entropy,
        lambda x, y: tf.nn.relu(x) - x * y + tf.math.log1p(tf.exp(-tf.abs(x))),
        (_LOGITS, _BITS),
    )
    yield Layer("Huber loss", optax.huber_loss, _huber, (_LOGITS, 3 * _LABELS))
    yield Layer(
        "smoothed labels",
        lambda i: optax.smooth_labels(jax.nn.one_hot(i, 6), _SMOOTHING),
        lambda i: tf.one_hot(i, 6) * (1 - _SMOOTHING) + _SMOOTHING / 6,
        (_CLASSES,),
    )
    yield Layer(
        "divergence",
        optax.kl_divergence,
        lambda x, y: tf.reduce_sum(y * (tf.where(tf.equal(y, 0), 0.0, tf.math.log(y)) - x), -1),
        (_LOGITS, _LABELS),
    )
    yield Layer(
        "gradients of a limited norm",
        lambda x, y: optax.clip_by_global_norm(1.0).update((x, y), optax.EmptyState())[0],
        _limited,
        (_LOGITS, normal(3, 5)),
    )
    yield Layer(
        "step of SGD with momentum",
        lambda p, g, m: (p - 0.1 * (g + 0.9 * m), g + 0.9 * m),
        _momentum,
        (_LOGITS, normal(4, 6, seed=1), normal(4, 6, seed=2)),
    )
    yield Layer("step of Adam", _adam, _adam_by_hand, (_LOGITS, normal(4, 6, seed=1)))


def _of_classes(x, i):
    y = x - tf.reduce_max(x, -1, keepdims=True)
    chosen = tf.gather(y, i, axis=1, batch_dims=1)
    return tf.math.log(tf.reduce_sum(tf.exp(y), -1)) - chosen


def _huber(x, y):
    error = tf.abs(x - y)
    square = tf.minimum(error, 1.0)
    return 0.5 * tf.square(square) + (error - square)


def _limited(x, y):
    norm = tf.sqrt(tf.reduce_sum(tf.square(x)) + tf.reduce_sum(tf.square(y)))
    is_small = norm < 1
    return tuple(tf.where(is_small, g, g / norm) for g in (x, y))


def _momentum(p, g, m):
    m = g + 0.9 * m
    return p - 0.1 * m, m


def _adam(p, g):
    optimizer = optax.adam(0.1)
    updates, state = optimizer.update(g, optimizer.init(jnp.zeros_like(p)))
    return optax.apply_updates(p, updates), state[0].mu, state[0].nu


def _adam_by_hand(p, g):
    """The first step: the moments before it are zeros, which fold."""
    mean, square = 0.1 * g, 0.001 * tf.square(g)
    update = (mean / np.float32(1 - 0.9)) / (
        tf.sqrt(square / np.float32(1 - 0.999)) + np.float32(1e-8)
    )
    return p - 0.1 * update, mean, square
