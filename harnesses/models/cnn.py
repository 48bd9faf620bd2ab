"""A small convolutional classifier of 28x28 images, with average and max pooling."""

import jax
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model


class CNN(nn.Module):
    """Two convolutions and two dense layers; returns log-probabilities of 10 classes."""

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = nn.relu(nn.Conv(32, (3, 3))(images))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(64, (3, 3))(x))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape(x.shape[0], -1)
        x = nn.relu(nn.Dense(256)(x))
        return nn.log_softmax(nn.Dense(10)(x))


_cnn = CNN()


def init(seed: int) -> dict:
    """Returns the variables."""
    return random_parameters(_cnn.init, make_inputs(0, 1), seed=seed)


def make_inputs(seed: int, batch: int) -> np.ndarray:
    """Returns images, float32 [batch, 28, 28, 1]."""
    return np.random.default_rng(seed).normal(size=(batch, 28, 28, 1)).astype(np.float32)


MODEL = Model("cnn", init, _cnn.apply, make_inputs)
