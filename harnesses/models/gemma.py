"""A decoder-only language model of the shapes of Gemma 3, in flax nnx."""

import dataclasses

from harnesses.models import decoder_layers
from harnesses.models.decoder_nnx import network
from harnesses.models.decoding import model

_SMALL = dataclasses.replace(decoder_layers.GEMMA, vocabulary=32, layers=2, features=32, hidden=48)
_REALISTIC = dataclasses.replace(
    decoder_layers.GEMMA,
    vocabulary=4096,
    layers=6,
    features=256,
    head_features=128,
    hidden=1024,
    window=128,
    period=6,
)

MODELS = {
    "small": model("gemma", network(_SMALL), _SMALL, 32),
    "realistic": model("gemma", network(_REALISTIC), _REALISTIC, 256),
}
