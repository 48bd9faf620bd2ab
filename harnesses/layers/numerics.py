"""Functions of `jax.numpy` and `jax.scipy` that choose, count, order and filter numbers."""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from harnesses.layers.layer import Layer, normal

_X = normal(4, 6)
_ROW = normal(6)
_EDGES = np.linspace(-2, 2, 5).astype(np.float32)
_INTEGERS = np.array([3, 1, 3, 0, 2, 1], np.int32)


def layers() -> Iterator[Layer]:
    """All of them."""
    yield from _chosen()
    yield from _ordered()
    yield from _counted()
    yield from _algebra()
    yield from _filters()


def _chosen() -> Iterator[Layer]:
    yield Layer(
        "select of two conditions",
        lambda x: jnp.select([x > 1, x > 0], [x, 2 * x], -1.0),
        lambda x: tf.where(x > 1, x, tf.where(x > 0, 2 * x, -1.0)),
        (_X,),
    )
    yield Layer(
        "chain of where",
        lambda x: jnp.where(x > 1, 1.0, jnp.where(x < -1, -1.0, x * x)),
        lambda x: tf.where(x > 1, 1.0, tf.where(x < -1, -1.0, x * x)),
        (_X,),
    )
    yield Layer(
        "piecewise",
        lambda x: jnp.piecewise(x, [x < 0, x >= 0], [lambda x: -x, jnp.square]),
        lambda x: tf.where(x < 0, -x, tf.square(x)),
        (_X,),
    )
    yield Layer("heaviside", lambda x: jnp.heaviside(x, 0.5), _heaviside, (_X,))
    yield Layer(
        "searchsorted",
        lambda x: jnp.searchsorted(jnp.asarray(_EDGES), x),
        lambda x: tf.searchsorted(_EDGES, x),
        (_ROW,),
    )
    yield Layer(
        "searchsorted by comparisons",
        lambda x: jnp.searchsorted(jnp.asarray(_EDGES), x, method="compare_all"),
        lambda x: tf.reduce_sum(tf.cast(x > _EDGES[:, None], tf.int32), 0),
        (_ROW,),
    )
    yield Layer(
        "digitize",
        lambda x: jnp.digitize(x, jnp.asarray(_EDGES)),
        lambda x: tf.searchsorted(_EDGES, x, side="right"),
        (_ROW,),
    )
    yield Layer(
        "interp",
        lambda x: jnp.interp(x, jnp.asarray(_EDGES), jnp.asarray(_EDGES**2)),
        _interpolated,
        (_ROW,),
    )


def _heaviside(x):
    return tf.where(x < 0, 0.0, tf.where(x > 0, 1.0, 0.5))


def _interpolated(x):
    """By the slopes between the points, which people store."""
    y = _EDGES**2
    i = tf.clip_by_value(tf.searchsorted(_EDGES, x, side="right"), 1, 4)
    slopes = np.concatenate([[0], np.diff(y) / np.diff(_EDGES)]).astype(np.float32)
    start, first = (np.concatenate([v[:1], v[:-1]]) for v in (_EDGES, y))
    inside = tf.gather(first, i) + (x - tf.gather(start, i)) * tf.gather(slopes, i)
    return tf.where(x < _EDGES[0], y[0], tf.where(x > _EDGES[-1], y[-1], inside))


def _ordered() -> Iterator[Layer]:
    yield Layer(
        "cumulative maximum", lambda x: lax.cummax(x, 1), lambda x: _scan(tf.maximum, x), (_X,)
    )
    yield Layer(
        "cumulative logsumexp",
        lambda x: lax.cumlogsumexp(x, 1),
        lambda x: tf.math.cumulative_logsumexp(x, 1),
        (_X,),
    )
    yield Layer(
        "indices of a descending sort",
        lambda x: jnp.argsort(x, 1, descending=True),
        lambda x: tf.math.top_k(x, 6)[1],
        (_X,),
    )
    yield Layer("sort of integers", jnp.sort, lambda x: ~tf.math.top_k(~x, 6)[0], (_INTEGERS,))
    yield Layer("median", lambda x: jnp.median(x, 1), _median, (_X,))
    yield Layer(
        "unique of a known size",
        lambda x: jnp.unique(x, size=6, fill_value=0),
        lambda x: tf.pad(tf.unique(tf.sort(x))[0], [(0, 6)])[:6],
        (_INTEGERS,),
    )
    yield Layer(
        "rows of the top k",
        lambda x: jnp.take(x, lax.top_k(x[:, 0], 2)[1], axis=0, mode="clip"),
        lambda x: tf.gather(x, tf.math.top_k(x[:, 0], 2)[1]),
        (_X,),
    )


def _scan(op, x):
    """By doubling distances, as TensorFlow has no op."""
    for shift in (1, 2, 4):
        x = tf.concat([x[:, :shift], op(x[:, shift:], x[:, :-shift])], 1)
    return x


def _median(x):
    return tf.reduce_mean(tf.math.top_k(x, 4)[0][:, 2:], 1)


def _counted() -> Iterator[Layer]:
    yield Layer(
        "bincount",
        lambda x: jnp.bincount(x, length=5),
        lambda x: tf.math.unsorted_segment_sum(tf.ones_like(x), x, 5),
        (_INTEGERS,),
    )
    yield Layer(
        "histogram",
        lambda x: jnp.histogram(x, 4, (-2.0, 2.0))[0],
        lambda x: tf.cast(tf.histogram_fixed_width(x, [-2.0, 2.0], 4), tf.float32),
        (np.clip(_ROW, -1.9, 1.9),),
    )
    segments = np.array([0, 1, 0, 2], np.int32)
    yield Layer(
        "segment maximum",
        lambda x: jax.ops.segment_max(x, segments, 3),
        lambda x: tf.math.unsorted_segment_max(x, segments, 3),
        (_X,),
    )
    yield Layer(
        "segment sum of unknown segments",
        lambda x, i: jax.ops.segment_sum(x, i, 3),
        lambda x, i: tf.math.unsorted_segment_sum(x, tf.where(i < 0, i + 3, i), 3),
        (_X, segments),
    )


def _algebra() -> Iterator[Layer]:
    yield Layer(
        "norm of order 1",
        lambda x: jnp.linalg.norm(x, 1, axis=1),
        lambda x: tf.reduce_sum(tf.abs(x), 1),
        (_X,),
    )
    yield Layer(
        "norm of the maximum",
        lambda x: jnp.linalg.norm(x, jnp.inf, axis=1),
        lambda x: tf.reduce_max(tf.abs(x), 1),
        (_X,),
    )
    yield Layer(
        "norm of a matrix",
        jnp.linalg.norm,
        lambda x: tf.sqrt(tf.reduce_sum(tf.square(x))),
        (_X,),
    )
    yield Layer("covariance", jnp.cov, _covariance, (_X,))
    yield Layer(
        "trace", jnp.trace, lambda x: tf.reduce_sum(tf.linalg.diag_part(x)), (normal(5, 5),)
    )
    yield Layer(
        "polynomial",
        lambda x: jnp.polyval(jnp.array([2.0, -1.0, 0.5]), x),
        lambda x: (2.0 * x - 1.0) * x + 0.5,
        (_X,),
    )
    yield Layer(
        "kron",
        jnp.kron,
        lambda x, y: tf.reshape(x[:, None, :, None] * y[None, :, None], (8, 18)),
        (normal(2, 3), _X),
    )
    experts, tokens = normal(3, 6, 5), normal(3, 4, 6)
    yield Layer(
        "dense layers of experts",
        lambda x: jax.nn.relu(jnp.einsum("ecd,edf->ecf", x, experts)),
        lambda x: tf.nn.relu(tf.matmul(x, experts)),
        (tokens,),
    )
    yield Layer(
        "mixture of experts",
        lambda x, gates: jnp.einsum("be,bd,edf->bf", gates, x, experts),
        lambda x, gates: tf.reduce_sum(tf.matmul(x, experts) * tf.transpose(gates)[..., None], 0),
        (_X, normal(4, 3)),
    )


def _covariance(x):
    x = x - tf.reduce_mean(x, 1, keepdims=True)
    return tf.matmul(x, x, transpose_b=True) / np.float32(5)


def _filters() -> Iterator[Layer]:
    kernel = np.array([0.25, 0.5, 0.3], np.float32)
    yield Layer(
        "convolve, same",
        lambda x: jnp.convolve(x, jnp.asarray(kernel), mode="same"),
        lambda x: tf.reshape(
            tf.nn.conv1d(tf.reshape(x, (1, 6, 1)), kernel[::-1].reshape(3, 1, 1).copy(), 1, "SAME"),
            (6,),
        ),
        (_ROW,),
    )
    plane = normal(3, 3)
    yield Layer(
        "convolve of an image",
        lambda x: jax.scipy.signal.convolve(x, jnp.asarray(plane), mode="same"),
        lambda x: tf.reshape(
            tf.nn.conv2d(
                tf.reshape(x, (1, 8, 8, 1)),
                np.ascontiguousarray(plane[::-1, ::-1]).reshape(3, 3, 1, 1),
                1,
                "SAME",
            ),
            (8, 8),
        ),
        (normal(8, 8),),
    )
    signal = normal(2, 16)
    yield Layer(
        "spectrum and back",
        lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2, 16),
        lambda x: tf.signal.irfft(tf.signal.rfft(x) * 2),
        (signal,),
    )
    yield Layer(
        "two-dimensional spectrum",
        lambda x: jnp.fft.fft2(x),
        lambda x: tf.signal.fft2d(tf.cast(x, tf.complex64)),
        (normal(8, 8),),
    )
    yield Layer(
        "fftshift",
        jnp.fft.fftshift,
        lambda x: tf.roll(x, (1, 8), (0, 1)),
        (signal,),
    )
    frames = 4 * np.arange(math.ceil(9 / 4))[:, None] + np.arange(8)
    yield Layer(
        "frames of a signal",
        lambda x: x[:, frames],
        lambda x: tf.gather(x, frames, axis=1),
        (signal,),
    )
