"""Convolutions, with what follows them."""

from collections.abc import Iterator
from typing import Any

import flax.linen as nn
import jax
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, applied, normal

_X = normal(2, 8, 8, 4)
_SEQUENCES = normal(2, 9, 4)
_VOLUMES = normal(1, 5, 6, 6, 4)
_BY_RANK = {"1-D": _SEQUENCES, "2-D": _X, "3-D": _VOLUMES}
_EPSILON = 1e-5


def _convolve(x, kernel, padding="SAME", strides=1, dilations=1):
    return tf.nn.convolution(x, kernel, strides, padding, dilations=dilations)


def folded(kernel: np.ndarray, bias: np.ndarray | float, norm, axis: int = -1):
    """A kernel and a bias that do what a batch norm does with known statistics."""
    params, statistics = norm["params"], norm["batch_stats"]
    factor = params["scale"] / np.sqrt(statistics["var"] + _EPSILON)
    shape = [1] * kernel.ndim
    shape[axis] = -1
    return kernel * factor.reshape(shape), (bias - statistics["mean"]) * factor + params["bias"]


class _Normalized(nn.Module):
    """A convolution, a batch norm, and perhaps a rectifier."""

    layer: nn.Module
    rectifies: bool = False

    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=True, name="norm")(self.layer(x))
        return nn.relu(x) if self.rectifies else x


def _normalized(name, layer, x, apply, rectifies=False, axis=-1, symbolic=False):
    """A layer with a batch norm behind it, whose weights take it in."""
    fun, variables = applied(_Normalized(layer, rectifies), x)
    params = variables["params"]["layer"]
    norm = {key: variables[key]["norm"] for key in ("params", "batch_stats")}
    kernel, bias = folded(params["kernel"], params.get("bias", 0.0), norm, axis)

    def by_hand(x):
        y = apply(x, kernel) + bias
        return tf.nn.relu(y) if rectifies else y

    return Layer(name, fun, by_hand, (x,), symbolic)


def layers() -> Iterator[Layer]:
    """Convolutions of each rank, with bias, activation and batch norm."""
    for rank, x in _BY_RANK.items():
        size = (3,) * (x.ndim - 2)
        fun, variables = applied(nn.Conv(6, size), x)
        kernel, bias = variables["params"]["kernel"], variables["params"]["bias"]

        def by_hand(x, kernel=kernel, bias=bias):
            return _convolve(x, kernel) + bias

        yield Layer(f"convolution, {rank}", fun, by_hand, (x,))
        yield Layer(f"convolution, {rank}, any batch", fun, by_hand, (x,), symbolic=True)
        for bias in (False, True):
            layer = nn.Conv(6, size, use_bias=bias)
            with_bias = " with bias" if bias else ""
            name = f"convolution{with_bias} and batch norm, {rank}"
            yield _normalized(name, layer, x, _convolve)
    yield _normalized(
        "convolution, batch norm and relu", nn.Conv(6, (3, 3)), _X, _convolve, rectifies=True
    )
    yield _normalized(
        "convolution, batch norm and relu, any batch",
        nn.Conv(6, (3, 3), use_bias=False),
        _X,
        _convolve,
        rectifies=True,
        symbolic=True,
    )
    for bias in (False, True):
        with_bias = " with bias" if bias else ""
        for symbolic in (False, True):
            batch = ", any batch" if symbolic else ""
            yield _normalized(
                f"dense{with_bias} and batch norm{batch}",
                nn.Dense(6, use_bias=bias),
                normal(3, 8),
                tf.matmul,
                symbolic=symbolic,
            )
    yield _normalized(
        "depthwise convolution and batch norm",
        nn.Conv(4, (3, 3), feature_group_count=4, use_bias=False),
        _X,
        lambda x, kernel: tf.nn.depthwise_conv2d(
            x, np.swapaxes(kernel, 2, 3), (1, 1, 1, 1), "SAME"
        ),
    )
    options: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "strides 2": ({"strides": (2, 2)}, {"strides": 2}),
        "dilated": ({"kernel_dilation": (2, 2)}, {"dilations": 2}),
        "valid": ({"padding": "VALID"}, {"padding": "VALID"}),
        "without bias": ({"use_bias": False}, {}),
    }
    for name, (ours, theirs) in options.items():
        fun, variables = applied(nn.Conv(6, (3, 3), **ours), _X)
        params = variables["params"]

        def by_hand(x, params=params, theirs=theirs):
            y = _convolve(x, params["kernel"], **theirs)
            return y + params["bias"] if "bias" in params else y

        yield Layer(f"convolution, {name}", fun, by_hand, (_X,))
    fun, variables = applied(nn.Conv(6, (1, 1)), _X)
    pointwise = variables["params"]
    yield Layer(
        "pointwise convolution",
        fun,
        lambda x: _convolve(x, pointwise["kernel"]) + pointwise["bias"],
        (_X,),
    )
    fun, variables = applied(nn.Conv(8, (3, 3), feature_group_count=4), _X)
    depthwise = variables["params"]

    def by_channel(x):
        kernel = depthwise["kernel"].reshape(3, 3, 4, 2)
        return tf.nn.depthwise_conv2d(x, kernel, (1, 1, 1, 1), "SAME") + depthwise["bias"]

    yield Layer("depthwise convolution", fun, by_channel, (_X,))
    fun, variables = applied(nn.ConvTranspose(6, (3, 3), strides=(2, 2)), _X)
    up = variables["params"]

    def upsampled(x):
        kernel = np.ascontiguousarray(up["kernel"][::-1, ::-1].swapaxes(2, 3))
        return tf.nn.conv2d_transpose(x, kernel, (2, 16, 16, 6), 2, "SAME") + up["bias"]

    yield Layer("transposed convolution", fun, upsampled, (_X,))
    kernel = normal(3, 3, 4, 6)
    yield Layer(
        "convolution and softplus",
        lambda x: jax.nn.softplus(
            jax.lax.conv_general_dilated(
                x,
                jax.numpy.asarray(kernel),
                (1, 1),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
        ),
        lambda x: tf.nn.softplus(_convolve(x, kernel)),
        (_X,),
    )
