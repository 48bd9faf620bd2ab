"""A bidirectional LSTM with attention that classifies sentences of different lengths."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model
from harnesses.models.transformer import PADDING, VOCABULARY, make_tokens

_LENGTH = 20


class BiLSTM(nn.Module):
    """Returns logits of the classes, [batch, classes]."""

    features: int = 32
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


_bilstm = BiLSTM()


def init(seed: int) -> dict:
    """Returns the variables."""
    return random_parameters(_bilstm.init, make_inputs(0, 1), seed=seed)


def make_inputs(seed: int, batch: int) -> np.ndarray:
    """Returns tokens, int32 [batch, 20]; zero after the end of a sentence."""
    return make_tokens(seed, batch, _LENGTH)


MODEL = Model("bilstm", init, _bilstm.apply, make_inputs)
