"""An LSTM that reads 40 steps in one `lax.scan`."""

import jax
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model

_STEPS = 40
_FEATURES = 128


class LSTM(nn.Module):
    """Returns the hidden states, [batch, steps, hidden], and logits computed from the last one."""

    hidden: int = 256
    classes: int = 10

    @nn.compact
    def __call__(self, sequences: jax.Array) -> tuple[jax.Array, jax.Array]:
        states = nn.RNN(nn.OptimizedLSTMCell(self.hidden))(sequences)
        return states, nn.Dense(self.classes)(states[:, -1])


_lstm = LSTM()


def init(seed: int) -> dict:
    """Returns the variables."""
    return random_parameters(_lstm.init, make_inputs(0, 1), seed=seed)


def make_inputs(seed: int, batch: int) -> np.ndarray:
    """Returns sequences, float32 [batch, 40, 128]."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(batch, _STEPS, _FEATURES)).astype(np.float32)


MODEL = Model("lstm", init, _lstm.apply, make_inputs)
