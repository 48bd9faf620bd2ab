"""The encoder of Whisper, after Radford et al., on log-mel features of speech."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.diffusion import waves
from harnesses.models.registry import Model
from harnesses.models.transformer import EncoderLayer


class WhisperEncoder(nn.Module):
    """Two convolutions over time, of which one halves it, and a transformer encoder.

    Returns [batch, frames / 2, features].
    """

    layers: int
    features: int
    heads: int

    @nn.compact
    def __call__(self, mels: jax.Array) -> jax.Array:
        x = nn.gelu(nn.Conv(self.features, (3,), padding=1)(mels))
        x = nn.gelu(nn.Conv(self.features, (3,), strides=2, padding=1)(x))
        x += waves(jnp.arange(x.shape[1]), self.features)
        for _ in range(self.layers):
            x = EncoderLayer(self.heads, 4 * self.features)(x)
        return nn.LayerNorm()(x)


def _model(mels: int, length: int, **sizes: Any) -> Model:
    network = WhisperEncoder(**sizes)

    def draw(rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
        """Returns log-mel features, float32 [batch, length, mels], each frame like the last."""
        steps = rng.normal(size=(batch, length, mels))
        return np.tanh(0.3 * np.cumsum(steps, axis=1)).astype(np.float32)

    dimensions = {"batch": 1, "length": length}
    return Model("whisper_encoder", network.init, network.apply, draw, dimensions, tolerance=1e-4)


MODELS = {
    "small": _model(6, 10, layers=2, features=16, heads=2),
    # The sizes of Whisper's smallest encoder, and half a minute of speech.
    "realistic": _model(80, 3000, layers=4, features=384, heads=6),
}
