"""ResNet-50 in inference mode, after He et al., "Deep Residual Learning for Image Recognition"."""

import functools
from typing import Any

import jax
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model


class Bottleneck(nn.Module):
    """A residual block: 1x1, 3x3 and 1x1 convolutions, with the stride in the second one."""

    features: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        conv = functools.partial(nn.Conv, use_bias=False)
        norm = functools.partial(nn.BatchNorm, use_running_average=True)
        strides = (self.stride, self.stride)

        y = nn.relu(norm()(conv(self.features, (1, 1))(x)))
        y = nn.relu(norm()(conv(self.features, (3, 3), strides)(y)))
        y = norm()(conv(4 * self.features, (1, 1))(y))
        if x.shape != y.shape:
            x = norm(name="shortcut_norm")(
                conv(4 * self.features, (1, 1), strides, name="shortcut")(x)
            )
        return nn.relu(x + y)


class ResNet(nn.Module):
    """A stem, stages of bottleneck blocks, global pooling and a classifier; returns logits."""

    stage_sizes: tuple[int, ...] = (3, 4, 6, 3)
    features: int = 64
    classes: int = 1000

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = nn.Conv(self.features, (7, 7), (2, 2), padding=((3, 3), (3, 3)), use_bias=False)(images)
        x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
        x = nn.max_pool(x, window_shape=(3, 3), strides=(2, 2), padding="SAME")
        for stage, blocks in enumerate(self.stage_sizes):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                x = Bottleneck(self.features * 2**stage, stride)(x)
        return nn.Dense(self.classes)(x.mean(axis=(1, 2)))


def _draw(rng: np.random.Generator, batch: int, height: int, width: int) -> np.ndarray:
    """Returns images, float32 [batch, height, width, 3]."""
    return rng.normal(size=(batch, height, width, 3)).astype(np.float32)


def _model(batch: int, pixels: int, **sizes: Any) -> Model:
    network = ResNet(**sizes)
    dimensions = {"batch": batch, "height": pixels, "width": pixels}
    return Model("resnet50", network.init, network.apply, _draw, dimensions, tolerance=1e-4)


MODELS = {
    "small": _model(2, 32, stage_sizes=(2, 1, 1, 1), features=4, classes=10),
    "realistic": _model(1, 224),
}
