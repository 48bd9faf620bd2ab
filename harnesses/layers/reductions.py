"""Reductions, cumulative sums, sorting, and simple mathematics."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from harnesses.layers.layer import Layer, normal

_X = normal(4, 6)
_INTEGERS = np.arange(-12, 12, dtype=np.int32).reshape(4, 6)


def layers() -> Iterator[Layer]:
    """Functions of `jax.numpy`."""
    reductions: dict[str, tuple[Any, Any]] = {
        "sum": (jnp.sum, tf.reduce_sum),
        "mean": (jnp.mean, tf.reduce_mean),
        "max": (jnp.max, tf.reduce_max),
        "min": (jnp.min, tf.reduce_min),
        "prod": (jnp.prod, tf.reduce_prod),
    }
    for name, (fun, by_hand) in reductions.items():
        yield Layer(f"{name} of all", fun, by_hand, (_X,))
        yield Layer(name, lambda x, f=fun: f(x, 1), lambda x, f=by_hand: f(x, 1), (_X,))
        yield Layer(
            f"{name}, keepdims",
            lambda x, f=fun: f(x, -1, keepdims=True),
            lambda x, f=by_hand: f(x, -1, keepdims=True),
            (_X,),
        )
    yield Layer(
        "mean of images",
        lambda x: x.mean((1, 2)),
        lambda x: tf.reduce_mean(x, (1, 2)),
        (normal(2, 4, 4, 3),),
    )
    yield Layer("variance", lambda x: x.var(1), _variance, (_X,))
    yield Layer("standard deviation", lambda x: x.std(1), lambda x: tf.sqrt(_variance(x)), (_X,))
    yield Layer(
        "norm",
        lambda x: jnp.linalg.norm(x, axis=1),
        lambda x: tf.sqrt(tf.reduce_sum(tf.square(x), 1)),
        (_X,),
    )
    yield Layer("any", lambda x: (x > 0).any(1), lambda x: tf.reduce_any(x > 0, 1), (_X,))
    yield Layer("all", lambda x: (x > 0).all(1), lambda x: tf.reduce_all(x > 0, 1), (_X,))
    yield Layer("argmax", lambda x: x.argmax(1), lambda x: tf.argmax(x, 1, tf.int32), (_X,))
    yield Layer("argmin", lambda x: x.argmin(1), lambda x: tf.argmin(x, 1, tf.int32), (_X,))
    yield Layer(
        "count_nonzero",
        lambda x: (x > 0).sum(1),
        lambda x: tf.reduce_sum(tf.cast(x > 0, tf.int32), 1),
        (_X,),
    )
    yield Layer("cumsum", lambda x: jnp.cumsum(x, 1), lambda x: tf.cumsum(x, 1), (_X,))
    yield Layer("cumprod", lambda x: jnp.cumprod(x, 1), lambda x: tf.math.cumprod(x, 1), (_X,))
    yield Layer(
        "reverse cumsum",
        lambda x: lax.cumsum(x, 1, reverse=True),
        lambda x: tf.cumsum(x, 1, reverse=True),
        (_X,),
    )
    yield Layer("diff", lambda x: jnp.diff(x, axis=1), lambda x: x[:, 1:] - x[:, :-1], (_X,))
    yield Layer("top_k", lambda x: lax.top_k(x, 3), lambda x: tf.math.top_k(x, 3), (_X,))
    yield Layer("sort", lambda x: jnp.sort(x, 1), lambda x: -tf.math.top_k(-x, 6)[0], (_X,))
    yield Layer("argsort", lambda x: jnp.argsort(x, 1), lambda x: tf.math.top_k(-x, 6)[1], (_X,))
    yield Layer(
        "descending sort",
        lambda x: jnp.sort(x, 1, descending=True),
        lambda x: tf.math.top_k(x, 6)[0],
        (_X,),
    )
    yield Layer(
        "clip", lambda x: jnp.clip(x, -1, 1), lambda x: tf.clip_by_value(x, -1.0, 1.0), (_X,)
    )
    yield Layer("x // 3", lambda x: x // 3, lambda x: x // 3, (_INTEGERS,))
    yield Layer("x % 3", lambda x: x % 3, lambda x: x % 3, (_INTEGERS,))
    yield Layer("x ** 2", lambda x: x**2, tf.square, (_X,))
    yield Layer("x ** 3", lambda x: x**3, lambda x: x * x * x, (_X,))
    yield Layer("x ** 0.5", lambda x: jnp.abs(x) ** 0.5, lambda x: tf.sqrt(tf.abs(x)), (_X,))
    yield Layer("1 / sqrt", lambda x: 1 / jnp.sqrt(x + 9), lambda x: tf.math.rsqrt(x + 9), (_X,))
    yield Layer("log1p", lambda x: jnp.log1p(x + 9), lambda x: tf.math.log1p(x + 9), (_X,))
    yield Layer("sign", jnp.sign, tf.sign, (_X,))
    yield Layer("round", jnp.round, tf.round, (_X,))
    yield Layer(
        "squared error",
        lambda x, y: ((x - y) ** 2).mean(),
        lambda x, y: tf.reduce_mean(tf.math.squared_difference(x, y)),
        (_X, _X + 1),
    )
    yield Layer("cosine similarity", _cosine, _cosine_by_hand, (_X, normal(4, 6, seed=1)))


def _variance(x):
    mean = tf.reduce_mean(x, 1, keepdims=True)
    return tf.reduce_mean(tf.math.squared_difference(x, mean), 1)


def _cosine(x, y):
    dot = (x * y).sum(-1)
    return dot / (jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1))


def _cosine_by_hand(x, y):
    def norm(x):
        return tf.sqrt(tf.reduce_sum(tf.square(x), -1))

    return tf.reduce_sum(x * y, -1) / (norm(x) * norm(y))
