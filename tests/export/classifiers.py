"""Classifiers of scikit-learn's digits, trained within seconds."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits

from harnesses.models.cnn import CNN
from harnesses.models.mobilenet_v2 import MobileNetV2
from harnesses.models.vision_transformer import VisionTransformer

_TESTED = 450
_BATCH = 128


class Classifier(NamedTuple):
    """A network for images of digits, and how many steps it is trained.

    Attributes:
      network: maps float32 [batch, height, width, channels] to logits.
      steps: the number of steps.
      rate: the rate of learning at first.
      images: what it is given of images [batch, 8, 8, 1].
    """

    network: nn.Module
    steps: int
    rate: float = 3e-3
    images: Callable[[np.ndarray], np.ndarray] = np.asarray


def _enlarged(images: np.ndarray) -> np.ndarray:
    """Images of 16x16 pixels with three channels."""
    return images.repeat(2, 1).repeat(2, 2).repeat(3, 3)


CLASSIFIERS = {
    "cnn": Classifier(CNN(features=16, hidden=64), 300),
    "mobilenet_v2": Classifier(
        MobileNetV2(
            stages=((1, 8, 1, 1), (4, 16, 2, 2), (4, 24, 1, 1)), stem=16, last=64, classes=10
        ),
        400,
        3e-3,
        _enlarged,
    ),
    "transformer": Classifier(
        VisionTransformer(patch=2, layers=2, features=32, heads=4, classes=10), 600, 1e-3
    ),
}


class Digits(NamedTuple):
    """Images, float32 [n, 8, 8, 1] in -1..1, and what they show, int32 [n]."""

    images: np.ndarray
    labels: np.ndarray


def digits() -> tuple[Digits, Digits]:
    """Returns the digits to train with, and those to test with, which are chosen at random."""
    data = load_digits()
    images = (data.images / 8 - 1).astype(np.float32)[..., None]
    labels = data.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(labels))
    tested, trained = order[:_TESTED], order[_TESTED:]
    return Digits(images[trained], labels[trained]), Digits(images[tested], labels[tested])


def train(classifier: Classifier, data: Digits) -> Any:
    """Returns the parameters of a trained network."""
    network, images = classifier.network, classifier.images(data.images)
    params = network.init(jax.random.key(0), images[:1])
    # Embeddings begin with numbers as large as those of patches: where norms of some tokens are
    # far smaller than those of others, their inverse needs more than eight bits.
    for name in ("class_embedding", "position_embedding"):
        if name in params["params"]:
            params["params"][name] *= 50
    optimizer = optax.adamw(
        optax.cosine_decay_schedule(classifier.rate, classifier.steps), weight_decay=0.01
    )

    @jax.jit
    def step(params, state, chosen):
        def loss(params):
            logits = network.apply(params, jnp.asarray(images)[chosen])
            labels = jnp.asarray(data.labels)[chosen]
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    rng, state = np.random.default_rng(0), optimizer.init(params)
    for _ in range(classifier.steps):
        params, state = step(params, state, rng.integers(len(images), size=_BATCH))
    return params
