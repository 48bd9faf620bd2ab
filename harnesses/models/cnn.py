"""A small convolutional classifier of 28x28 images, with average and max pooling."""

import jax
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model


class CNN(nn.Module):
    """Two convolutions and two dense layers; returns log-probabilities of 10 classes."""

    features: int
    hidden: int

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = nn.relu(nn.Conv(self.features, (3, 3))(images))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(2 * self.features, (3, 3))(x))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape(x.shape[0], -1)
        x = nn.relu(nn.Dense(self.hidden)(x))
        return nn.log_softmax(nn.Dense(10)(x))


def _draw(rng: np.random.Generator, batch: int, height: int, width: int) -> np.ndarray:
    """Returns images, float32 [batch, height, width, 1]."""
    return rng.normal(size=(batch, height, width, 1)).astype(np.float32)


def _model(pixels: int, **sizes: int) -> Model:
    network = CNN(**sizes)
    dimensions = {"batch": 2, "height": pixels, "width": pixels}
    return Model("cnn", network.init, network.apply, _draw, dimensions)


MODELS = {
    "small": _model(12, features=4, hidden=16),
    "realistic": _model(28, features=32, hidden=256),
}
