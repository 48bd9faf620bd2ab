"""Random layers of images, as libraries of JAX write them, and what those of other arrays need."""

from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Function = Callable[[jax.Array], jax.Array]

ACTIVATIONS: Sequence[Function] = (
    jax.nn.relu,
    jax.nn.relu6,
    jax.nn.gelu,
    lambda x: jax.nn.gelu(x, approximate=False),
    jax.nn.silu,
    jax.nn.mish,
    jax.nn.hard_swish,
    jax.nn.hard_sigmoid,
    jax.nn.elu,
    jax.nn.selu,
    jax.nn.celu,
    jax.nn.leaky_relu,
    jax.nn.softplus,
    jax.nn.tanh,
    jax.nn.sigmoid,
    jax.nn.log_sigmoid,
    jax.nn.soft_sign,
    jax.nn.softmax,
    jax.nn.log_softmax,
    jax.nn.standardize,
    lambda x: jax.nn.softmax(x, axis=1),
    lambda x: jnp.clip(x, -1, 2),
    lambda x: jnp.where(x > 0, x, 0.1 * x),
    lambda x: x / (1 + jnp.abs(x)),
    lambda x: x * 0.5 + 1,
    lambda x: x - x.mean(-1, keepdims=True),
    lambda x: x / jnp.sqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6),
)


class Choices:
    """What layers are made of.

    Attributes:
      rng: where the choices come from.
      dtype: the dtype of all weights.
    """

    def __init__(self, rng: np.random.Generator, dtype: Any) -> None:
        self.rng = rng
        self.dtype = dtype

    def normal(self, *shape: int) -> jax.Array:
        """Weights whose products are as large as their operands."""
        scale = 1 / np.sqrt(max(np.prod(shape[:-1]), 1))
        return jnp.asarray(self.rng.normal(size=shape) * scale, self.dtype)

    def _one(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def _chance(self) -> bool:
        return bool(self.rng.integers(2))

    def _features(self) -> int:
        return self._one([1, 2, 4, 6, 8])

    def _module(self, module: nn.Module, shape: Sequence[int], *more: Any) -> Function:
        """A module of Flax with random parameters."""
        x = jnp.zeros(shape, self.dtype)
        variables = jax.eval_shape(module.init, jax.random.key(0), x, *more)
        variables = jax.tree.map(lambda leaf: abs(self.normal(*leaf.shape)) + 0.1, variables)
        if "params" in variables:
            variables["params"] = jax.tree.map(
                lambda leaf: self.normal(*leaf.shape), variables["params"]
            )
        return lambda x: module.apply(variables, x, *more)


class Images(Choices):
    """Makes layers of images, and some that sequences have, too."""

    def conv(self, shape: tuple[int, ...]) -> Function:
        """A convolution, perhaps of groups or each feature alone, followed by an activation."""
        axes = len(shape) - 2
        groups = self._one([1, 1, 2, shape[-1]])
        module = nn.Conv(
            groups * self._one([1, 2, 3]),
            (self._one([1, 2, 3]),) * axes,
            self._one([1, 1, 2]),
            self._one(["SAME", "VALID", "CIRCULAR", 1, [(1, 0)] * axes]),
            kernel_dilation=self._one([1, 1, 2]),
            feature_group_count=groups,
            use_bias=self._chance(),
            dtype=self.dtype,
        )
        layer = self._module(module, shape)
        activation = self._one(ACTIVATIONS)
        return layer if self._chance() else lambda x: activation(layer(x))

    def conv_first(self, shape: tuple[int, ...]) -> Function:
        """A convolution with features first, as Equinox has it."""
        kernel = self.normal(3, 3, shape[-1], 4).transpose(3, 2, 0, 1)
        offset = self.normal(4, 1, 1)
        norm = self._one([lambda x: x, lambda x: normalized(x, (1, 2, 3)), jax.nn.relu])
        back = self._chance()

        def layer(x: jax.Array) -> jax.Array:
            x = x.transpose(0, 3, 1, 2)
            y = norm(lax.conv_general_dilated(x, kernel, (1, 1), "SAME") + offset)
            return y.transpose(0, 2, 3, 1) if back else y

        return layer

    def conv_transpose(self, shape: tuple[int, ...]) -> Function:
        """A transposed convolution."""
        module = nn.ConvTranspose(
            self._features(),
            (self._one([2, 3, 4]),) * 2,
            (self._one([1, 2]),) * 2,
            self._one(["SAME", "VALID"]),
            use_bias=self._chance(),
            transpose_kernel=self._chance(),
            dtype=self.dtype,
        )
        return self._module(module, shape)

    def pool(self, shape: tuple[int, ...]) -> Function:
        """Extremes or means of windows, or of all places."""
        axes = len(shape) - 2
        window, strides = (self._one([2, 3]),) * axes, (self._one([1, 2]),) * axes
        padding = self._one(["SAME", "VALID"])
        places = tuple(range(1, len(shape) - 1))
        return self._one(
            [
                lambda x: nn.max_pool(x, window, strides, padding),
                lambda x: nn.avg_pool(x, window, strides, padding),
                lambda x: nn.avg_pool(x, window, strides, padding, count_include_pad=False),
                lambda x: x.mean(places),
                lambda x: x.max(places, keepdims=True) - x,
            ]
        )

    def padded(self, shape: tuple[int, ...]) -> Function:
        """More elements at the ends of an axis."""
        mode = self._one(["constant", "edge", "reflect", "wrap", "symmetric"])
        widths = [(0, 0), *[(self._one([0, 1]), 1)] * (len(shape) - 2), (0, 0)]
        return lambda x: jnp.pad(x, widths, mode)

    def gate(self, shape: tuple[int, ...]) -> Function:
        """Factors of features by what the whole image has of them."""
        features = shape[-1]
        down, up, is_kept = self.normal(features, 2), self.normal(2, features), self._chance()

        def layer(x: jax.Array) -> jax.Array:
            means = x.mean((1, 2), keepdims=is_kept)
            gates = jax.nn.sigmoid(jax.nn.relu(means @ down) @ up)
            return x * (gates if is_kept else gates[:, None, None])

        return layer

    def image_reshaped(self, shape: tuple[int, ...]) -> Function:
        """An image as patches, blocks, a sequence or features."""
        _, h, w, c = shape
        return self._one(
            [
                lambda x: x.reshape(x.shape[0], h * w, c),
                lambda x: x.reshape(x.shape[0], -1),
                lambda x: jnp.moveaxis(x, -1, 1).reshape(x.shape[0], c, h * w),
                lambda x: (
                    x.reshape(x.shape[0], h // 2, 2, w // 2, 2, c)
                    .transpose(0, 1, 3, 2, 4, 5)
                    .reshape(x.shape[0], h // 2, w // 2, 4 * c)
                ),
                lambda x: x.reshape(x.shape[0], h, w, 2, c // 2).swapaxes(3, 4).reshape(x.shape),
                lambda x: jax.image.resize(x, (x.shape[0], 2 * h, 2 * w, c), "nearest"),
                lambda x: jax.image.resize(x, (x.shape[0], h + 1, w + 2, c), "bilinear"),
            ]
        )


def normalized(x: jax.Array, axes: Sequence[int]) -> jax.Array:
    """A norm over axes."""
    mean = x.mean(axes, keepdims=True)
    variance = x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + jnp.asarray(1e-5, x.dtype))
