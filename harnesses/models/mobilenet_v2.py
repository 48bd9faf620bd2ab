"""MobileNetV2 in inference mode, after Sandler et al., "Inverted Residuals and Linear Bottlenecks".

An inverted residual widens its input by a 1x1 convolution, filters each channel by a 3x3
convolution of its own, and narrows the result by a 1x1 convolution without an activation.
"""

import functools
from typing import Any

import jax
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model

# Of each stage: expansion, features, number of blocks, and stride of the first block.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)

_conv = functools.partial(nn.Conv, use_bias=False)
_norm = functools.partial(nn.BatchNorm, use_running_average=True, epsilon=1e-3)


class InvertedResidual(nn.Module):
    """A block, with a residual connection if it changes neither the size nor the channels."""

    expansion: int
    features: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        channels = x.shape[-1]
        wide = self.expansion * channels
        strides = (self.stride, self.stride)

        y = x
        if self.expansion > 1:
            y = nn.relu6(_norm()(_conv(wide, (1, 1))(y)))
        y = nn.relu6(_norm()(_conv(wide, (3, 3), strides, feature_group_count=wide)(y)))
        y = _norm()(_conv(self.features, (1, 1))(y))
        return x + y if self.stride == 1 and channels == self.features else y


class MobileNetV2(nn.Module):
    """A stem, stages of inverted residuals, global pooling and a classifier; returns logits."""

    stages: tuple[tuple[int, int, int, int], ...] = _STAGES
    stem: int = 32
    last: int = 1280
    classes: int = 1000

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = nn.relu6(_norm()(_conv(self.stem, (3, 3), (2, 2))(images)))
        for expansion, features, blocks, stride in self.stages:
            for block in range(blocks):
                x = InvertedResidual(expansion, features, stride if block == 0 else 1)(x)
        x = nn.relu6(_norm()(_conv(self.last, (1, 1))(x)))
        return nn.Dense(self.classes)(x.mean(axis=(1, 2)))


def _draw(rng: np.random.Generator, batch: int, height: int, width: int) -> np.ndarray:
    """Returns images, float32 [batch, height, width, 3]."""
    return rng.normal(size=(batch, height, width, 3)).astype(np.float32)


def _model(batch: int, pixels: int, **sizes: Any) -> Model:
    network = MobileNetV2(**sizes)
    dimensions = {"batch": batch, "height": pixels, "width": pixels}
    return Model("mobilenet_v2", network.init, network.apply, _draw, dimensions, tolerance=1e-4)


MODELS = {
    "small": _model(2, 32, stages=((1, 4, 1, 1), (3, 6, 2, 2)), stem=4, last=16, classes=10),
    "realistic": _model(1, 224),
}
