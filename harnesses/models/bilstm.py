"""A bidirectional LSTM with attention that classifies sentences of different lengths."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from harnesses.models.registry import Model
from harnesses.models.transformer import PADDING, VOCABULARY, draw_tokens


class BiLSTM(nn.Module):
    """Returns logits of the classes, [batch, classes]."""

    features: int
    classes: int = 2

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        present = tokens != PADDING
        x = nn.Embed(VOCABULARY, self.features)(tokens)
        forward = nn.RNN(nn.OptimizedLSTMCell(self.features))
        backward = nn.RNN(nn.OptimizedLSTMCell(self.features))
        x = nn.Bidirectional(forward, backward)(x, seq_lengths=present.sum(axis=1))
        scores = nn.Dense(1)(nn.tanh(nn.Dense(self.features)(x)))[..., 0]
        weights = nn.softmax(jnp.where(present, scores, -jnp.inf))
        return nn.Dense(self.classes)(jnp.einsum("bl,blf->bf", weights, x))


def _model(length: int, **sizes: int) -> Model:
    network = BiLSTM(**sizes)
    dimensions = {"batch": 2, "length": length}
    return Model("bilstm", network.init, network.apply, draw_tokens, dimensions)


MODELS = {
    "small": _model(7, features=8),
    "realistic": _model(40, features=256),
}
