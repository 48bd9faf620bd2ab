"""Normalization by the statistics of an input, or by known ones, for every rank."""

from collections.abc import Iterator

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, applied, normal

_BY_RANK = {
    "vectors": normal(3, 8),
    "sequences": normal(2, 5, 8),
    "images": normal(2, 4, 4, 8),
    "volumes": normal(1, 3, 4, 4, 8),
}
_EPSILON = 1e-6


def _normalized(x, axes, scale, bias, fast=True):
    """A norm; if `fast`, with the variance E[x^2] - E[x]^2 of Flax, which may round below zero."""
    mean = tf.reduce_mean(x, axes, keepdims=True)
    if fast:
        square = tf.reduce_mean(tf.square(x), axes, keepdims=True)
        variance = tf.nn.relu(square - tf.square(mean))
    else:
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axes, keepdims=True)
    factor = tf.math.rsqrt(variance + _EPSILON) * scale
    return (x - mean) * factor + bias


def _grouped(x, groups, params):
    *outer, channels = x.shape
    y = tf.reshape(x, (*outer, groups, channels // groups))
    axes = [*range(1, len(outer)), len(outer) + 1]
    scale, bias = (params[k].reshape(groups, -1) for k in ("scale", "bias"))
    return tf.reshape(_normalized(y, axes, scale, bias), x.shape)


def layers() -> Iterator[Layer]:
    """Layer, RMS, group, instance, batch and weight norms."""
    for rank, x in _BY_RANK.items():
        yield from _of_rank(rank, x)
    x = _BY_RANK["sequences"]
    fun, variables = applied(nn.LayerNorm(use_fast_variance=False), x)
    exact = variables["params"]
    yield Layer(
        "layer norm by differences",
        fun,
        lambda x: _normalized(x, -1, exact["scale"], exact["bias"], fast=False),
        (x,),
    )
    fun, variables = applied(nn.LayerNorm(), x)
    params = variables["params"]
    yield Layer(
        "layer norm, any batch",
        fun,
        lambda x: _normalized(x, -1, params["scale"], params["bias"]),
        (x,),
        symbolic=True,
    )
    yield Layer(
        "layer norm as people write it",
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
        _layer_norm,
        (x,),
    )
    yield Layer(
        "unit norm",
        lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True),
        lambda x: x / tf.sqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True)),
        (x,),
    )
    yield Layer(
        "nn.normalize by a maximum",
        lambda x: x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-6),
        lambda x: x / tf.maximum(tf.sqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True)), 1e-6),
        (x,),
    )


def _layer_norm(x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
    return (x - mean) / tf.sqrt(variance + 1e-5)


def _of_rank(rank: str, x: np.ndarray) -> Iterator[Layer]:
    fun, variables = applied(nn.LayerNorm(), x)
    layer = variables["params"]
    yield Layer(
        f"layer norm of {rank}",
        fun,
        lambda x: _normalized(x, -1, layer["scale"], layer["bias"]),
        (x,),
    )
    fun, variables = applied(nn.RMSNorm(), x)
    scale = variables["params"]["scale"]

    def rms_norm(x):
        square = tf.reduce_mean(tf.square(x), -1, keepdims=True)
        return x * (tf.math.rsqrt(square + _EPSILON) * scale)

    yield Layer(f"RMS norm of {rank}", fun, rms_norm, (x,))
    fun, variables = applied(nn.BatchNorm(use_running_average=True), x)
    params, statistics = variables["params"], variables["batch_stats"]
    factor = params["scale"] / np.sqrt(statistics["var"] + 1e-5)
    yield Layer(
        f"batch norm of {rank}",
        fun,
        lambda x: x * factor + (params["bias"] - statistics["mean"] * factor),
        (x,),
    )
    if x.ndim > 2:
        fun, variables = applied(nn.GroupNorm(2), x)
        group = variables["params"]
        yield Layer(f"group norm of {rank}", fun, lambda x: _grouped(x, 2, group), (x,))
        fun, variables = applied(nn.InstanceNorm(), x)
        instance = variables["params"]
        yield Layer(
            f"instance norm of {rank}",
            fun,
            lambda x: _normalized(
                x, list(range(1, x.shape.rank - 1)), instance["scale"], instance["bias"]
            ),
            (x,),
        )
