"""Activations."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, normal

_X = normal(2, 6, 6, 4)
_RANKS = {"vector": normal(8), "matrix": normal(3, 8), "images": _X}


def _glu(x):
    a, b = tf.split(x, 2, -1)
    return a * tf.sigmoid(b)


def layers() -> Iterator[Layer]:
    """The functions of `jax.nn`, and what people write in their place."""
    by_hand = {
        "relu": (jax.nn.relu, tf.nn.relu),
        "relu6": (jax.nn.relu6, tf.nn.relu6),
        "elu": (jax.nn.elu, tf.nn.elu),
        "celu": (jax.nn.celu, tf.nn.elu),
        "celu, alpha 2": (lambda x: jax.nn.celu(x, 2.0), lambda x: tf.nn.elu(x / 2) * 2),
        "elu, alpha 2": (
            lambda x: jax.nn.elu(x, 2.0),
            lambda x: tf.where(x > 0, x, 2 * tf.math.expm1(tf.minimum(x, 0.0))),
        ),
        "selu": (jax.nn.selu, tf.nn.selu),
        "silu": (jax.nn.silu, lambda x: x * tf.sigmoid(x)),
        "gelu": (lambda x: jax.nn.gelu(x, approximate=False), tf.nn.gelu),
        "gelu, tanh": (jax.nn.gelu, lambda x: tf.nn.gelu(x, approximate=True)),
        "sigmoid": (jax.nn.sigmoid, tf.sigmoid),
        "log_sigmoid": (jax.nn.log_sigmoid, lambda x: -tf.nn.softplus(-x)),
        "softplus": (jax.nn.softplus, tf.nn.softplus),
        "soft_sign": (jax.nn.soft_sign, lambda x: x / (tf.abs(x) + 1)),
        "tanh": (jnp.tanh, tf.tanh),
        "hard_tanh": (jax.nn.hard_tanh, lambda x: tf.clip_by_value(x, -1.0, 1.0)),
        "hard_sigmoid": (jax.nn.hard_sigmoid, lambda x: tf.nn.relu6(x + 3) / 6),
        "hard_silu": (jax.nn.hard_silu, lambda x: x * (tf.nn.relu6(x + 3) / 6)),
        "leaky_relu": (jax.nn.leaky_relu, lambda x: tf.nn.leaky_relu(x, 0.01)),
        "mish": (jax.nn.mish, lambda x: x * tf.tanh(tf.nn.softplus(x))),
        "squareplus": (jax.nn.squareplus, lambda x: (x + tf.sqrt(tf.square(x) + 4.0)) * 0.5),
        "glu": (jax.nn.glu, _glu),
        "softmax": (jax.nn.softmax, tf.nn.softmax),
        "log_softmax": (jax.nn.log_softmax, tf.nn.log_softmax),
        "logsumexp": (
            lambda x: jax.nn.logsumexp(x, -1),
            lambda x: tf.reduce_logsumexp(x, -1),
        ),
        "standardize": (
            jax.nn.standardize,
            lambda x: (
                (x - tf.reduce_mean(x, -1, keepdims=True))
                * tf.math.rsqrt(
                    tf.nn.relu(
                        tf.reduce_mean(tf.square(x), -1, keepdims=True)
                        - tf.square(tf.reduce_mean(x, -1, keepdims=True))
                    )
                    + 1e-5
                )
            ),
        ),
    }
    for name, (fun, written) in by_hand.items():
        yield Layer(name, fun, written, (_X,))
    for name in ("relu", "gelu", "softmax"):
        for kind, x in _RANKS.items():
            if kind != "images":
                fun, written = by_hand[name]
                yield Layer(f"{name} of a {kind}", fun, written, (x,))
    for name in ("relu6", "silu", "gelu, tanh", "log_softmax"):
        fun, written = by_hand[name]
        yield Layer(f"{name}, any batch", fun, written, (_X,), symbolic=True)
    yield Layer(
        "softmax, axis 1", lambda x: jax.nn.softmax(x, 1), lambda x: tf.nn.softmax(x, 1), (_X,)
    )
    yield Layer(
        "masked softmax",
        lambda x, mask: jax.nn.softmax(x, where=mask),
        lambda x, mask: tf.where(mask, tf.nn.softmax(tf.where(mask, x, -np.inf)), 0.0),
        (_X, _X > -1),
    )
