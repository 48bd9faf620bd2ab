"""Random compositions of layers, as libraries of JAX write them, on images, sequences and features.

Arrays have their batch first, whose size no layer knows, and their features last.
"""

from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Function = Callable[[jax.Array], jax.Array]

BATCH = 3
# More elements make a test longer.
_MOST = 2500

_ACTIVATIONS: Sequence[Function] = (
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


class Layers:
    """Makes layers of random kinds and weights.

    Attributes:
      rng: where the choices come from.
      dtype: the dtype of all weights.
    """

    def __init__(self, rng: np.random.Generator, dtype: Any) -> None:
        self.rng = rng
        self.dtype = dtype

    def program(self, shape: Sequence[int], count: int) -> Function:
        """A composition of layers for arrays of a shape."""
        layers: list[Function] = []
        for _ in range(count):
            layer = self._layer(tuple(shape))
            layers.append(layer)
            shape = self._shape(layer, shape)
        return lambda x: _composed(layers, x)

    def _layer(self, shape: tuple[int, ...]) -> Function:
        """A layer, perhaps in a residual block, beside another one, or as a gate."""
        layer = self._fitting(shape)
        after = self._shape(layer, shape)
        match int(self.rng.integers(12)):
            case 0 if after == shape:
                return lambda x: x + layer(x)
            case 1 if after[:-1] == shape[:-1]:
                return lambda x: jnp.concatenate([x, layer(x)], -1)
            case 2 if after == shape:
                return lambda x: x * jax.nn.sigmoid(layer(x))
            case 3:
                other = self._fitting(shape)
                if self._shape(other, shape) == after:
                    return lambda x: layer(x) + other(x)
        return layer

    def _fitting(self, shape: tuple[int, ...]) -> Function:
        """A layer whose results are neither empty nor large."""
        kinds = {4: self.of_images, 3: self.of_sequences, 2: self.of_features}[len(shape)]()
        while True:
            kind = kinds[int(self.rng.integers(len(kinds)))]
            try:
                layer = kind(shape)
                after = self._shape(layer, shape)
            except (ValueError, TypeError, ZeroDivisionError, AssertionError):
                continue  # It has no such sizes.
            if 0 < np.prod(after) <= _MOST and 2 <= len(after) <= 4 and after[0] == shape[0]:
                return layer

    def _shape(self, layer: Function, shape: Sequence[int]) -> tuple[int, ...]:
        return jax.eval_shape(layer, jax.ShapeDtypeStruct(tuple(shape), self.dtype)).shape

    def _any(self) -> list[Callable[[tuple[int, ...]], Function]]:
        return [
            lambda shape: self._one(_ACTIVATIONS),
            lambda shape: self._one(_ACTIVATIONS),
            self.norm,
            self.norm,
            self.affine,
            self.dense,
            self.moved,
            self.indexed,
            lambda shape: self._module(nn.Dropout(0.5, deterministic=True), shape),
        ]

    def of_images(self) -> list[Callable[[tuple[int, ...]], Function]]:
        """Kinds of layers of four axes."""
        convolutions = [self.conv, self.conv, self.conv_first, self.conv_transpose]
        return [*self._any(), *convolutions, self.pool, self.padded, self.gate, self.image_reshaped]

    def of_sequences(self) -> list[Callable[[tuple[int, ...]], Function]]:
        """Kinds of layers of three axes."""
        mixing = [self.attention, self.attention, self.einsum, self.conv, self.recurrent]
        return [*self._any(), *mixing, self.pool, self.padded, self.sequence_reshaped]

    def of_features(self) -> list[Callable[[tuple[int, ...]], Function]]:
        """Kinds of layers of two axes."""
        return [*self._any(), self.dense, self.features_reshaped]

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

    def norm(self, shape: tuple[int, ...]) -> Function:
        """A norm, in one of the ways in which libraries write it."""
        dtype, features = self.dtype, shape[-1]
        scale, bias = self._chance(), self._chance()
        groups = self._one([g for g in (1, 2, 4, features) if features % g == 0])
        options = [
            nn.LayerNorm(use_scale=scale, use_bias=bias, dtype=dtype),
            nn.LayerNorm(use_fast_variance=False, dtype=dtype),
            nn.RMSNorm(use_scale=scale, dtype=dtype),
            nn.BatchNorm(True, use_scale=scale, use_bias=bias, dtype=dtype),
            nn.GroupNorm(groups, use_scale=scale, use_bias=bias, dtype=dtype),
            nn.GroupNorm(groups, use_fast_variance=False, dtype=dtype),
            nn.InstanceNorm(use_scale=scale, use_bias=bias, dtype=dtype),
        ]
        if self._chance():
            return self._module(self._one(options), shape)
        gain, offset = self.normal(features), self.normal(features)
        axes = self._one([(-1,), tuple(range(1, len(shape))), (1,)])
        if self._chance():
            return lambda x: _normalized(x, axes) * gain + offset
        return lambda x: (
            _normalized(x.reshape(*x.shape[:-1], groups, -1), (*range(1, x.ndim - 1), -1)).reshape(
                x.shape
            )
            * gain
        )

    def affine(self, shape: tuple[int, ...]) -> Function:
        """A constant for each feature, row or element is added or a factor."""
        of = self._one([shape[-1:], shape[1:], (1, *shape[1:]), (*shape[1:-1], 1), ()])
        number = self.normal(*of)
        return self._one([lambda x: x + number, lambda x: x * number, lambda x: number - x])

    def dense(self, shape: tuple[int, ...]) -> Function:
        """A product with weights, with and without a bias."""
        features, bias = self._features(), self._chance()
        if self._chance():
            return self._module(nn.Dense(features, bias, dtype=self.dtype), shape)
        weights, offset = self.normal(shape[-1], features), self.normal(features)
        if self._chance():  # As Equinox does.
            return lambda x: jnp.einsum("oi,...i->...o", weights.T, x) + offset
        return lambda x: jnp.dot(x, weights)

    def moved(self, shape: tuple[int, ...]) -> Function:
        """The same elements elsewhere."""
        axes = [0, *(1 + self.rng.permutation(len(shape) - 1)).tolist()]
        axis = self._one(range(1, len(shape)))
        return self._one(
            [
                lambda x: x.transpose(axes),
                lambda x: jnp.flip(x, axis),
                lambda x: jnp.roll(x, 1, axis),
                lambda x: jnp.concatenate(jnp.split(x, [1], axis)[::-1], axis),
                lambda x: jnp.stack([x, -x], axis).reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :]),
                lambda x: jnp.repeat(x, 2, axis),
            ]
        )

    def indexed(self, shape: tuple[int, ...]) -> Function:
        """Elements by their places or their order."""
        axis = self._one(range(1, len(shape)))
        size = shape[axis]
        places = self.rng.integers(-size, size, 3)
        return self._one(
            [
                lambda x: jnp.take(x, places, axis),
                lambda x: jnp.sort(x, axis),
                lambda x: lax.top_k(x, min(2, x.shape[-1]))[0],
                lambda x: jnp.cumsum(x, axis) / size,
                lambda x: lax.slice_in_dim(x, 0, None, 2, axis),
                lambda x: x.at[:, 0].set(0),
                lambda x: x.at[:, -1].add(1),
                lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis), axis),
                lambda x: jnp.max(x, axis),
                lambda x: jnp.mean(x, axis, keepdims=True) + x,
            ]
        )

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
        activation = self._one(_ACTIVATIONS)
        return layer if self._chance() else lambda x: activation(layer(x))

    def conv_first(self, shape: tuple[int, ...]) -> Function:
        """A convolution with features first, as Equinox has it."""
        kernel = self.normal(3, 3, shape[-1], 4).transpose(3, 2, 0, 1)
        offset = self.normal(4, 1, 1)
        norm = self._one([lambda x: x, lambda x: _normalized(x, (1, 2, 3)), jax.nn.relu])
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
        down, up = self.normal(features, 2), self.normal(2, features)

        def layer(x: jax.Array) -> jax.Array:
            means = x.mean((1, 2), keepdims=self._kept)
            gates = jax.nn.sigmoid(jax.nn.relu(means @ down) @ up)
            return x * (gates if self._kept else gates[:, None, None])

        return layer

    @property
    def _kept(self) -> bool:
        return self.dtype == jnp.float32

    def image_reshaped(self, shape: tuple[int, ...]) -> Function:
        """An image as patches, blocks, a sequence or features."""
        b, h, w, c = shape
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
                lambda x: (
                    x.reshape(x.shape[0], h, w, 2, c // 2).swapaxes(3, 4).reshape(x.shape)
                ),
                lambda x: jax.image.resize(x, (x.shape[0], 2 * h, 2 * w, c), "nearest"),
                lambda x: jax.image.resize(x, (x.shape[0], h + 1, w + 2, c), "bilinear"),
            ]
        )

    def attention(self, shape: tuple[int, ...]) -> Function:
        """Attention to itself, as in Flax or by the functions of JAX."""
        features = shape[-1]
        heads = self._one([h for h in (1, 2, 4) if features % h == 0])
        if self._chance():
            module = nn.MultiHeadDotProductAttention(
                heads, dtype=self.dtype, use_bias=self._chance(), deterministic=True
            )
            return self._module(module, shape)
        weights, out = self.normal(features, 3 * features), self.normal(features, features)
        causal, by_jax = self._chance(), self._chance()

        def layer(x: jax.Array) -> jax.Array:
            parts = jnp.split(x @ weights, 3, -1)
            q, k, v = (y.reshape(*y.shape[:2], heads, features // heads) for y in parts)
            if by_jax:
                y = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
            else:
                scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(features // heads)
                if causal:
                    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
                    scores = jnp.where(mask, scores, jnp.finfo(x.dtype).min)
                y = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
            return x + y.astype(x.dtype).reshape(x.shape) @ out

        return layer

    def einsum(self, shape: tuple[int, ...]) -> Function:
        """Products along other axes than the last, or of an array with itself."""
        _, length, features = shape
        rows, tensor = self.normal(length, 4), self.normal(features, 2, 3)
        return self._one(
            [
                lambda x: jnp.einsum("btf,ts->bsf", x, rows),
                lambda x: jnp.einsum("btf,bsf->bts", x, x) / features,
                lambda x: jnp.einsum("btf,fhd->bthd", x, tensor),
                lambda x: jnp.einsum("btf,btg->bfg", x, x) / length,
                lambda x: jnp.tensordot(x, tensor, 1).sum(2),
            ]
        )

    def recurrent(self, shape: tuple[int, ...]) -> Function:
        """A scan over the rows."""
        weights = self.normal(shape[-1], shape[-1])

        def layer(x: jax.Array) -> jax.Array:
            def step(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
                state = jnp.tanh(state @ weights + row)
                return state, state

            return lax.scan(step, jnp.zeros_like(x[:, 0]), x.swapaxes(0, 1))[1].swapaxes(0, 1)

        return layer

    def sequence_reshaped(self, shape: tuple[int, ...]) -> Function:
        """A sequence as an image or features."""
        b, length, features = shape
        return self._one(
            [
                lambda x: x.reshape(x.shape[0], length // 2, 2, features),
                lambda x: x.reshape(x.shape[0], length, 2, features // 2),
                lambda x: x.reshape(x.shape[0], -1),
                lambda x: x[:, -1],
                lambda x: x.mean(1),
                lambda x: x[:, ::-1],
                lambda x: x[:, :, None],
                lambda x: x.reshape(-1, features).reshape(x.shape[0], features, length),
                lambda x: nn.glu(x),
            ]
        )

    def features_reshaped(self, shape: tuple[int, ...]) -> Function:
        """Features as a sequence or an image."""
        b, features = shape
        return self._one(
            [
                lambda x: x.reshape(x.shape[0], features // 2, 2),
                lambda x: x.reshape(x.shape[0], -1, 2, features // 4),
                lambda x: x[:, :, None] * x[:, None],
                lambda x: jnp.tile(x[:, None], (1, 3, 1)),
                lambda x: x[:, None, None, :],
            ]
        )


def _normalized(x: jax.Array, axes: Sequence[int]) -> jax.Array:
    mean = x.mean(axes, keepdims=True)
    variance = x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + jnp.asarray(1e-5, x.dtype))


def _composed(layers: Sequence[Function], x: jax.Array) -> jax.Array:
    for layer in layers:
        x = layer(x)
    return x
