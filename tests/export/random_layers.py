"""Random compositions of layers, as libraries of JAX write them, on images, sequences and features.

Arrays have their batch first, whose size no layer knows, and their features last.
"""

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.export.random_images import ACTIVATIONS, Function, Images, normalized

BATCH = 3
# More elements make a test longer.
_MOST = 2500


class Layers(Images):
    """Makes layers of random kinds and weights."""

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
            lambda shape: self._one(ACTIVATIONS),
            lambda shape: self._one(ACTIVATIONS),
            self.norm,
            self.norm,
            self.affine,
            self.dense,
            self.quantized,
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
            return lambda x: normalized(x, axes) * gain + offset
        return lambda x: (
            normalized(x.reshape(*x.shape[:-1], groups, -1), (*range(1, x.ndim - 1), -1)).reshape(
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

    def quantized(self, shape: tuple[int, ...]) -> Function:
        """A product with weights of few bits, which are scaled, or the product is."""
        features = self._features()
        kind = self._one(["int8", "int4", "uint4", "float8_e4m3fn"])
        integers = jnp.asarray(np.abs(self.rng.normal(size=(shape[-1], features))) * 4).astype(kind)
        factor = jnp.abs(self.normal(features)) / 8

        return self._one(
            [
                lambda x: (x @ integers.astype(x.dtype)) * factor,
                lambda x: x @ (integers.astype(x.dtype) * factor),
            ]
        )

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
                lambda x: jnp.stack([x, -x], axis).reshape(
                    *x.shape[:axis], -1, *x.shape[axis + 1 :]
                ),
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
        weights, of_rows = (self.normal(shape[-1], shape[-1]) for _ in range(2))
        has_product = self._chance()

        def layer(x: jax.Array) -> jax.Array:
            def step(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
                state = jnp.tanh(state @ weights + (row @ of_rows if has_product else row))
                return state, state

            return lax.scan(step, jnp.zeros_like(x[:, 0]), x.swapaxes(0, 1))[1].swapaxes(0, 1)

        return layer

    def sequence_reshaped(self, shape: tuple[int, ...]) -> Function:
        """A sequence as an image or features."""
        _, length, features = shape
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
        features = shape[-1]
        return self._one(
            [
                lambda x: x.reshape(x.shape[0], features // 2, 2),
                lambda x: x.reshape(x.shape[0], -1, 2, features // 4),
                lambda x: x[:, :, None] * x[:, None],
                lambda x: jnp.tile(x[:, None], (1, 3, 1)),
                lambda x: x[:, None, None, :],
            ]
        )


def _composed(layers: Sequence[Function], x: jax.Array) -> jax.Array:
    for layer in layers:
        x = layer(x)
    return x
