"""A U-Net, after Ronneberger et al., with group norms, and attention where images are smallest."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model


class Block(nn.Module):
    """Two convolutions with group norms and a residual connection.

    A `condition`, [batch, features], is added to all pixels after the first convolution.
    """

    features: int
    groups: int = 4

    @nn.compact
    def __call__(self, x: jax.Array, condition: jax.Array | None) -> jax.Array:
        y = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(self.groups)(x)))
        if condition is not None:
            y += nn.Dense(self.features)(nn.swish(condition))[:, None, None]
        y = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(self.groups)(y)))
        return y + nn.Conv(self.features, (1, 1))(x)


class PixelAttention(nn.Module):
    """Self-attention of all pixels, with a residual connection."""

    heads: int = 2

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        batch, height, width, features = x.shape
        pixels = nn.GroupNorm(4)(x).reshape(batch, height * width, features)
        return x + nn.MultiHeadDotProductAttention(self.heads)(pixels).reshape(x.shape)


class UNet(nn.Module):
    """Blocks at smaller and smaller sizes, then back; each size hands its result across.

    Returns [batch, height, width, channels].
    """

    features: tuple[int, ...]
    channels: int

    @nn.compact
    def __call__(self, images: jax.Array, condition: jax.Array | None = None) -> jax.Array:
        x = nn.Conv(self.features[0], (3, 3))(images)
        across = []
        for features in self.features[:-1]:
            x = Block(features)(x, condition)
            across.append(x)
            x = nn.Conv(features, (3, 3), strides=(2, 2))(x)
        x = PixelAttention()(Block(self.features[-1])(x, condition))
        for features, larger in zip(self.features[-2::-1], across[::-1], strict=True):
            x = nn.ConvTranspose(features, (2, 2), strides=(2, 2))(x)
            x = Block(features)(jnp.concatenate([x, larger], axis=-1), condition)
        return nn.Conv(self.channels, (3, 3))(nn.swish(nn.GroupNorm(4)(x)))


def _draw(rng: np.random.Generator, batch: int, height: int, width: int) -> np.ndarray:
    """Returns images, float32 [batch, height, width, 3]."""
    return rng.normal(size=(batch, height, width, 3)).astype(np.float32)


def _model(batch: int, pixels: int, **sizes: Any) -> Model:
    network = UNet(**sizes)
    dimensions = {"batch": batch, "height": pixels, "width": pixels}
    return Model("unet", network.init, network.apply, _draw, dimensions, tolerance=1e-4)


MODELS = {
    "small": _model(2, 8, features=(4, 8), channels=2),
    "realistic": _model(1, 128, features=(32, 64, 128, 256), channels=20),
}
