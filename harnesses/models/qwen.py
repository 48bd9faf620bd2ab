"""A decoder-only language model of the shapes of Qwen 3, in flax linen."""

import dataclasses

from harnesses.models import decoder_layers
from harnesses.models.decoder_linen import network
from harnesses.models.decoding import model

_SMALL = dataclasses.replace(decoder_layers.QWEN, vocabulary=32, layers=2, features=32, hidden=48)
_REALISTIC = dataclasses.replace(
    decoder_layers.QWEN,
    vocabulary=4096,
    layers=6,
    features=384,
    heads=8,
    head_features=64,
    hidden=1152,
)

MODELS = {
    "small": model("qwen", network(_SMALL), _SMALL, 32),
    "realistic": model("qwen", network(_REALISTIC), _REALISTIC, 256),
}
