"""Modules of `flax.nnx`, and blocks of several layers."""

from collections.abc import Iterator

import flax.linen as nn
import numpy as np
import tensorflow as tf
from flax import nnx

from harnesses.layers.layer import Layer, applied, nnx_applied, normal

_X = normal(3, 8)
_IMAGES = normal(2, 8, 8, 4)


def layers() -> Iterator[Layer]:
    """Layers of nnx, and blocks of networks."""
    fun, linear = nnx_applied(lambda rngs: nnx.Linear(8, 6, rngs=rngs))
    yield Layer(
        "nnx.Linear",
        fun,
        lambda x: tf.matmul(x, linear["kernel"]) + linear["bias"],
        (_X,),
    )
    fun, conv = nnx_applied(lambda rngs: nnx.Conv(4, 6, (3, 3), rngs=rngs))
    yield Layer(
        "nnx.Conv",
        fun,
        lambda x: tf.nn.conv2d(x, conv["kernel"], 1, "SAME") + conv["bias"],
        (_IMAGES,),
    )
    fun, norm = nnx_applied(lambda rngs: nnx.BatchNorm(4, use_running_average=True, rngs=rngs))
    factor = norm["scale"] / np.sqrt(norm["var"] + 1e-5)
    yield Layer(
        "nnx.BatchNorm",
        fun,
        lambda x: x * factor + (norm["bias"] - norm["mean"] * factor),
        (_IMAGES,),
    )
    fun, rms = nnx_applied(lambda rngs: nnx.RMSNorm(8, rngs=rngs))
    yield Layer(
        "nnx.RMSNorm",
        fun,
        lambda x: (
            x
            * (tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * rms["scale"])
        ),
        (_X,),
    )
    fun, squeezing = applied(_SqueezeAndExcite(), _IMAGES)
    yield Layer("squeeze and excite", fun, lambda x: _excited(x, squeezing["params"]), (_IMAGES,))
    residual, variables = applied(_Residual(), _X)
    params = variables["params"]
    yield Layer(
        "residual block",
        residual,
        lambda x: (
            x
            + tf.matmul(
                tf.nn.relu(tf.matmul(x, params["Dense_1"]["kernel"]) + params["Dense_1"]["bias"]),
                params["Dense_0"]["kernel"],
            )
            + params["Dense_0"]["bias"]
        ),
        (_X,),
    )


class _SqueezeAndExcite(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = x.mean((1, 2), keepdims=True)
        y = nn.relu(nn.Conv(2, (1, 1))(y))
        return x * nn.sigmoid(nn.Conv(4, (1, 1))(y))


def _excited(x, params):
    y = tf.reduce_mean(x, (1, 2), keepdims=True)
    first, second = params["Conv_0"], params["Conv_1"]
    y = tf.nn.relu(tf.nn.conv2d(y, first["kernel"], 1, "SAME") + first["bias"])
    return x * tf.sigmoid(tf.nn.conv2d(y, second["kernel"], 1, "SAME") + second["bias"])


class _Residual(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(8)(nn.relu(nn.Dense(12)(x)))
