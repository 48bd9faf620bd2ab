"""Layers with other paddings, groups and orders of axes than most have, and functions by `vmap`."""

from collections.abc import Iterator
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from harnesses.layers.layer import Layer, applied, normal

_X = normal(4, 6)
_IMAGES = normal(2, 8, 8, 4)
_SEQUENCES = normal(2, 9, 4)
_CHANNELS_FIRST = normal(2, 4, 8, 8)


def _wrapped(x, axis, count):
    """With `count` elements of each end after the other end."""
    size = x.shape[axis]
    before = tf.gather(x, range(size - count, size), axis=axis)
    after = tf.gather(x, range(count), axis=axis)
    return tf.concat([before, x, after], axis)


def _padded(x, amounts, value=0.0):
    return tf.pad(x, [(0, 0), *amounts, (0, 0)], constant_values=value)


def _convolutions() -> Iterator[Layer]:
    """Convolutions of one input by hand: what is done to it first, and the attributes."""
    around = [(1, 1), (1, 1)]
    cases: dict[str, tuple[nn.Module, np.ndarray, Any, dict[str, Any]]] = {
        "circular": (
            nn.Conv(6, (3, 3), padding="CIRCULAR"),
            _IMAGES,
            lambda x: _wrapped(_wrapped(x, 1, 1), 2, 1),
            {},
        ),
        "reflecting": (
            nn.Conv(6, (3, 3), padding="REFLECT"),
            _IMAGES,
            lambda x: tf.pad(x, [(0, 0), *around, (0, 0)], "REFLECT"),
            {},
        ),
        "causal and dilated": (
            nn.Conv(6, (3,), padding="CAUSAL", kernel_dilation=2),
            _SEQUENCES,
            lambda x: _padded(x, [(4, 0)]),
            {"dilations": 2},
        ),
        "in two groups": (
            nn.Conv(6, (3, 3), feature_group_count=2),
            _IMAGES,
            lambda x: x,
            {"padding": "SAME"},
        ),
        "padded by one": (
            nn.Conv(6, (3, 3), strides=2, padding=1),
            _IMAGES,
            lambda x: _padded(x, around),
            {"strides": 2},
        ),
    }
    for name, (module, x, prepared, options) in cases.items():
        fun, variables = applied(module, x)
        params = variables["params"]
        options = {"strides": 1, "padding": "VALID", **options}

        def by_hand(x, params=params, prepared=prepared, options=options):
            return tf.nn.convolution(prepared(x), params["kernel"], **options) + params["bias"]

        yield Layer(f"convolution, {name}", fun, by_hand, (x,))
    first, second = normal(3, 3, 4, 6), normal(3, 3, 6, 5)

    def convolve(x, kernel):
        numbers = ("NCHW", "HWIO", "NCHW")
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)

    yield Layer(
        "convolutions, features first",
        lambda x: convolve(jax.nn.relu(convolve(x, first)), second),
        lambda x: _first(
            tf.nn.conv2d(
                tf.nn.relu(tf.nn.conv2d(tf.transpose(x, (0, 2, 3, 1)), first, 1, "SAME")),
                second,
                1,
                "SAME",
            )
        ),
        (_CHANNELS_FIRST,),
    )
    fun, variables = applied(nn.ConvTranspose(6, (4,), strides=(2,)), _SEQUENCES)
    up = variables["params"]

    def upsampled(x):
        kernel = np.ascontiguousarray(up["kernel"][::-1].swapaxes(1, 2))
        return tf.nn.conv1d_transpose(x, kernel, (2, 18, 6), 2, "SAME") + up["bias"]

    yield Layer("transposed convolution, 1-D", fun, upsampled, (_SEQUENCES,))


def _pooling() -> Iterator[Layer]:
    yield Layer(
        "max pool, features first",
        lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), padding="VALID"
        ),
        lambda x: tf.reshape(
            tf.nn.max_pool2d(tf.reshape(x, (8, 8, 8, 1)), 2, 2, "VALID"), (2, 4, 4, 4)
        ),
        (_CHANNELS_FIRST,),
    )
    around = ((1, 1), (1, 1))
    yield Layer(
        "max pool, padded",
        lambda x: nn.max_pool(x, (3, 3), (2, 2), around),
        lambda x: tf.nn.max_pool2d(_padded(x, around, -np.inf), 3, 2, "VALID"),
        (_IMAGES,),
    )
    yield Layer(
        "average pool, padded",
        lambda x: nn.avg_pool(x, (3, 3), (2, 2), around),
        lambda x: tf.nn.avg_pool2d(_padded(x, around), 3, 2, "VALID"),
        (_IMAGES,),
    )
    yield Layer(
        "pool of squares",
        lambda x: jnp.sqrt(nn.avg_pool(x * x, (2, 2), (2, 2))),
        lambda x: tf.sqrt(tf.nn.avg_pool2d(tf.square(x), 2, 2, "VALID")),
        (_IMAGES,),
    )


def _blocks(x):
    return x.reshape(2, 4, 2, 4, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(2, 16, 16)


def _moves() -> Iterator[Layer]:
    """Functions that move elements, and differences of neighbours."""
    yield Layer(
        "patches as tokens",
        _blocks,
        lambda x: tf.reshape(tf.nn.space_to_depth(x, 2), (2, 16, 16)),
        (_IMAGES,),
    )
    yield Layer(
        "windows of images",
        lambda x: x.reshape(2, 2, 4, 2, 4, 4).swapaxes(2, 3).reshape(8, 16, 4),
        lambda x: tf.reshape(
            tf.transpose(tf.reshape(x, (2, 2, 4, 2, 4, 4)), (0, 1, 3, 2, 4, 5)), (8, 16, 4)
        ),
        (_IMAGES,),
    )
    yield Layer(
        "shuffled channels",
        lambda x: x.reshape(2, 8, 8, 2, 2).swapaxes(3, 4).reshape(x.shape),
        lambda x: tf.reshape(
            tf.transpose(tf.reshape(x, (2, 8, 8, 2, 2)), (0, 1, 2, 4, 3)), (2, 8, 8, 4)
        ),
        (_IMAGES,),
    )
    yield Layer(
        "stack, last axis",
        lambda x, y: jnp.stack([x, y], -1),
        lambda x, y: tf.stack([x, y], -1),
        (_X, -_X),
    )
    yield Layer(
        "class token",
        lambda x: jnp.concatenate([jnp.broadcast_to(_X[0, :4], (2, 1, 4)), x], 1),
        lambda x: tf.concat([np.broadcast_to(_X[0, :4], (2, 1, 4)), x], 1),
        (_SEQUENCES,),
    )
    yield Layer("moveaxis", lambda x: jnp.moveaxis(x, -1, 1), _first, (_IMAGES,))
    yield Layer(
        "relative positions",
        lambda x: x[:, np.arange(4)[:, None] - np.arange(4) + 2],
        lambda x: tf.gather(
            x, np.maximum(np.arange(4)[:, None] - np.arange(4) + 2, -1) % 6, axis=1
        ),
        (_X,),
    )
    yield Layer(
        "x.at[1:3].set",
        lambda x, y: x.at[1:3].set(y),
        lambda x, y: tf.raw_ops.TensorStridedSliceUpdate(
            input=x, begin=[1], end=[3], strides=[1], value=y
        ),
        (_X, normal(2, 6)),
    )
    yield Layer("gradient of rows", lambda x: jnp.gradient(x, axis=1), _differences, (_X,))
    yield Layer(
        "trapezoid",
        lambda x: jnp.trapezoid(x, axis=1),
        lambda x: tf.reduce_sum(x, 1) - 0.5 * (x[:, 0] + x[:, -1]),
        (_X,),
    )


def _first(x):
    return tf.transpose(x, (0, 3, 1, 2))


def _differences(x):
    inner = (x[:, 2:] - x[:, :-2]) * 0.5
    return tf.concat([x[:, 1:2] - x[:, :1], inner, x[:, -1:] - x[:, -2:-1]], 1)


def _mapped() -> Iterator[Layer]:
    """Functions of one example, mapped to several."""
    yield Layer(
        "vmap of a dot", jax.vmap(jnp.dot), lambda x, y: tf.reduce_sum(x * y, 1), (_X, 2 * _X)
    )
    yield Layer(
        "vmap of a matrix and a vector",
        jax.vmap(lambda x, w: w @ x, (0, None)),
        lambda x, w: tf.matmul(x, w, transpose_b=True),
        (_X, normal(5, 6)),
    )
    yield Layer(
        "vmap of matrices and vectors",
        jax.vmap(lambda x, w: w @ x),
        lambda x, w: tf.linalg.matvec(w, x),
        (_X, normal(4, 5, 6)),
    )
    yield Layer(
        "vmap of an argmax", jax.vmap(jnp.argmax), lambda x: tf.argmax(x, 1, tf.int32), (_X,)
    )
    yield Layer("vmap of another axis", jax.vmap(lambda x: 2 * x, 1, 1), lambda x: 2 * x, (_X,))


class _Weighted(nn.Module):
    """A dense layer whose weights are normalized."""

    @nn.compact
    def __call__(self, x):
        return nn.WeightNorm(nn.Dense(6))(x)


def _losses() -> Iterator[Layer]:
    fun, variables = applied(_Weighted(), _X)
    names = variables["params"]
    (scale,) = jax.tree.leaves(names["WeightNorm_0"])
    dense = names["Dense_0"]
    kernel = dense["kernel"]
    kernel = scale * kernel / np.sqrt(np.sum(np.square(kernel), 0) + 1e-12)
    yield Layer("nn.WeightNorm", fun, lambda x: tf.matmul(x, kernel) + dense["bias"], (_X,))
    yield Layer(
        "hinge loss",
        lambda x, y: jnp.maximum(0, 1 - x * y),
        lambda x, y: tf.nn.relu(1 - x * y),
        (_X, np.sign(_X)),
    )
    yield Layer(
        "squared distances",
        lambda x, y: jnp.sum((x[:, None] - y[None]) ** 2, -1),
        lambda x, y: tf.reduce_sum(tf.math.squared_difference(x[:, None], y[None]), -1),
        (_X, 2 * _X),
    )
    yield Layer(
        "cross entropy of probabilities",
        lambda x, y: -jnp.sum(y * jax.nn.log_softmax(x), -1),
        lambda x, y: -tf.reduce_sum(y * tf.nn.log_softmax(x), -1),
        (_X, np.full((4, 6), 1 / 6, np.float32)),
    )
    yield Layer(
        "unit norm, at least a number",
        lambda x: x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-12),
        lambda x: x / tf.maximum(tf.sqrt(tf.reduce_sum(x * x, -1, keepdims=True)), 1e-12),
        (_X,),
    )


def layers() -> Iterator[Layer]:
    """All of them."""
    yield from _convolutions()
    yield from _pooling()
    yield from _moves()
    yield from _mapped()
    yield from _losses()
