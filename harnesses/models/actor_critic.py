"""A convolutional actor-critic network for reinforcement learning on Atari screens."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model


class ActorCritic(nn.Module):
    """Returns log-probabilities of the actions, [batch, actions], and values, [batch, 1]."""

    actions: int = 6

    @nn.compact
    def __call__(self, screens: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = screens.astype(jnp.float32) / 255
        x = nn.relu(nn.Conv(32, (8, 8), strides=(4, 4))(x))
        x = nn.relu(nn.Conv(64, (4, 4), strides=(2, 2))(x))
        x = nn.relu(nn.Conv(64, (3, 3), strides=(1, 1))(x))
        x = nn.relu(nn.Dense(512)(x.reshape(x.shape[0], -1)))
        return nn.log_softmax(nn.Dense(self.actions)(x)), nn.Dense(1)(x)


_actor_critic = ActorCritic()


def init(seed: int) -> dict:
    """Returns the variables."""
    return random_parameters(_actor_critic.init, make_inputs(0, 1), seed=seed)


def make_inputs(seed: int, batch: int) -> np.ndarray:
    """Returns four stacked screens per example, uint8 [batch, 84, 84, 4]."""
    return np.random.default_rng(seed).integers(256, size=(batch, 84, 84, 4), dtype=np.uint8)


MODEL = Model("actor_critic", init, _actor_critic.apply, make_inputs)
