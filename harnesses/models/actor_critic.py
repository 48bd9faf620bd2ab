"""A convolutional actor-critic network for reinforcement learning on Atari screens."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model


class ActorCritic(nn.Module):
    """Returns log-probabilities of the actions, [batch, actions], and values, [batch, 1]."""

    features: int
    hidden: int
    actions: int = 6

    @nn.compact
    def __call__(self, screens: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = screens.astype(jnp.float32) / 255
        x = nn.relu(nn.Conv(self.features, (8, 8), strides=(4, 4))(x))
        x = nn.relu(nn.Conv(2 * self.features, (4, 4), strides=(2, 2))(x))
        x = nn.relu(nn.Conv(2 * self.features, (3, 3), strides=(1, 1))(x))
        x = nn.relu(nn.Dense(self.hidden)(x.reshape(x.shape[0], -1)))
        return nn.log_softmax(nn.Dense(self.actions)(x)), nn.Dense(1)(x)


def _draw(rng: np.random.Generator, batch: int, height: int, width: int) -> np.ndarray:
    """Returns four stacked screens per example, uint8 [batch, height, width, 4]."""
    return rng.integers(256, size=(batch, height, width, 4), dtype=np.uint8)


def _model(screen: int, **sizes: int) -> Model:
    network = ActorCritic(**sizes)
    dimensions = {"batch": 2, "height": screen, "width": screen}
    return Model("actor_critic", network.init, network.apply, _draw, dimensions)


MODELS = {
    "small": _model(36, features=8, hidden=32),
    "realistic": _model(84, features=32, hidden=512),
}
