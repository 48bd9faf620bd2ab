"""NumPy's elementwise functions, and those of `jax.nn` that are no activations."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, normal

_X, _Y = normal(3, 8), normal(3, 8, seed=1)
_POSITIVE = np.abs(_X) + np.float32(0.5)
_INTEGERS = np.arange(24, dtype=np.int32).reshape(3, 8)


def _constant(number: float) -> np.float32:
    return np.float32(number)


def layers() -> Iterator[Layer]:
    """Functions of one number, and of two."""
    for name, of_one in {
        "floor": (jnp.floor, tf.floor),
        "ceil": (jnp.ceil, tf.math.ceil),
        "rint": (jnp.rint, tf.round),
        "tan": (jnp.tan, tf.tan),
        "sinh": (jnp.sinh, tf.sinh),
        "cosh": (jnp.cosh, tf.cosh),
        "arcsin": (jnp.arcsin, tf.asin),
        "arctan": (jnp.arctan, tf.atan),
        "isnan": (jnp.isnan, tf.math.is_nan),
        "isfinite": (jnp.isfinite, tf.math.is_finite),
        "negative": (jnp.negative, tf.negative),
        "reciprocal": (jnp.reciprocal, lambda x: 1 / x),
        "degrees": (jnp.degrees, lambda x: x * _constant(180 / np.pi)),
        "deg2rad": (jnp.deg2rad, lambda x: x * _constant(np.pi / 180)),
        "exp2": (jnp.exp2, lambda x: tf.exp(x * _constant(np.log(2)))),
        "sinc": (
            jnp.sinc,
            lambda x: tf.where(
                tf.equal(x, 0),
                1.0,
                tf.sin(x * _constant(np.pi)) / (x * _constant(np.pi)),
            ),
        ),
        "hard_swish": (jax.nn.hard_swish, lambda x: x * (tf.nn.relu6(x + 3) / 6)),
        "sparse_plus": (
            jax.nn.sparse_plus,
            lambda x: tf.where(x <= -1, 0.0, tf.where(x >= 1, x, tf.square(x + 1) / 4)),
        ),
        "sparse_sigmoid": (
            jax.nn.sparse_sigmoid,
            lambda x: tf.clip_by_value((x + 1) / 2, 0.0, 1.0),
        ),
        "logmeanexp": (
            lambda x: jax.nn.logmeanexp(x, -1),
            lambda x: tf.reduce_logsumexp(x, -1) - _constant(np.log(8)),
        ),
    }.items():
        yield Layer(name, *of_one, (_X,))
    for name, of_positive in {
        "log2": (jnp.log2, lambda x: tf.math.log(x) / _constant(np.log(2))),
        "log10": (jnp.log10, lambda x: tf.math.log(x) / _constant(np.log(10))),
        "cbrt": (jnp.cbrt, lambda x: x ** _constant(1 / 3)),
    }.items():
        yield Layer(name, *of_positive, (_POSITIVE,))
    for name, of_two in {
        "divide": (jnp.divide, tf.divide),
        "mod": (jnp.mod, tf.math.floormod),
        "fmod": (jnp.fmod, tf.truncatemod),
        "floor_divide": (jnp.floor_divide, lambda x, y: tf.floor(x / y)),
        "hypot": (jnp.hypot, lambda x, y: tf.sqrt(tf.square(x) + tf.square(y))),
        "not_equal": (jnp.not_equal, tf.not_equal),
        "logical_and": (
            lambda x, y: jnp.logical_and(x > 0, y > 0),
            lambda x, y: tf.logical_and(x > 0, y > 0),
        ),
        "arctan2": (jnp.arctan2, tf.atan2),
        "isclose": (
            jnp.isclose,
            lambda x, y: tf.abs(x - y) <= _constant(1e-8) + _constant(1e-5) * tf.abs(y),
        ),
    }.items():
        yield Layer(name, *of_two, (_X, _Y))
    for name, of_integers in {
        "bitwise_and": (lambda x: x & 6, lambda x: tf.bitwise.bitwise_and(x, 6)),
        "bitwise_xor": (lambda x: x ^ 6, lambda x: tf.bitwise.bitwise_xor(x, 6)),
        "left_shift": (lambda x: x << 2, lambda x: tf.bitwise.left_shift(x, 2)),
        "isin": (
            lambda x: jnp.isin(x, jnp.array([3, 5])),
            lambda x: tf.logical_or(tf.equal(x, 3), tf.equal(x, 5)),
        ),
    }.items():
        yield Layer(name, *of_integers, (_INTEGERS,))
    yield from _without_nan()


def _without_nan() -> Iterator[Layer]:
    def mean(x):
        is_number = tf.equal(x, x)
        total = tf.reduce_sum(tf.where(is_number, x, 0.0), -1)
        return total / tf.reduce_sum(tf.cast(is_number, tf.float32), -1)

    yield Layer(
        "nansum",
        lambda x: jnp.nansum(x, -1),
        lambda x: tf.reduce_sum(tf.where(tf.math.is_nan(x), 0.0, x), -1),
        (_X,),
    )
    yield Layer("nanmean", lambda x: jnp.nanmean(x, -1), mean, (_X,))
    yield Layer(
        "ptp",
        lambda x: jnp.ptp(x, -1),
        lambda x: tf.reduce_max(x, -1) - tf.reduce_min(x, -1),
        (_X,),
    )
