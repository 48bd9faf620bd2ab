"""An LSTM that reads a sequence in one `lax.scan`."""

import jax
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model


class LSTM(nn.Module):
    """Returns the hidden states, [batch, steps, hidden], and logits computed from the last one."""

    hidden: int
    classes: int = 10

    @nn.compact
    def __call__(self, sequences: jax.Array) -> tuple[jax.Array, jax.Array]:
        states = nn.RNN(nn.OptimizedLSTMCell(self.hidden))(sequences)
        return states, nn.Dense(self.classes)(states[:, -1])


def _model(length: int, features: int, hidden: int) -> Model:
    network = LSTM(hidden)

    def draw(rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
        """Returns sequences, float32 [batch, length, features]."""
        return rng.normal(size=(batch, length, features)).astype(np.float32)

    return Model("lstm", network.init, network.apply, draw, {"batch": 2, "length": length})


MODELS = {
    "small": _model(5, features=6, hidden=8),
    "realistic": _model(40, features=128, hidden=256),
}
