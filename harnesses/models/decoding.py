"""Decoder-only language models as models of the registry: tokens after some in a cache."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from harnesses.models.decoder_layers import Decoder, scaled
from harnesses.models.registry import Model

# How many tokens a call reads, and how many are in the cache before.
_LENGTH = 8
_BEFORE = 5


def model(
    name: str,
    network: tuple[Callable[..., Any], Callable[..., Any]],
    sizes: Decoder,
    capacity: int,
) -> Model:
    """A model that returns logits, [1, length, vocabulary], and the cache with the tokens.

    Args:
      name: the name of the model.
      network: functions that return parameters, and that compute a step.
      sizes: the sizes of the model.
      capacity: how many tokens the cache has room for.
    """
    variables, step = network

    def apply(params: Any, inputs: dict) -> Any:
        return step(params, *(inputs[key] for key in ("tokens", "positions", "mask", "cache")))

    def draw(rng: np.random.Generator, capacity: int) -> dict[str, Any]:
        """Returns what LiteRT-LM gives such a model: tokens, positions, a mask and the cache."""
        positions = np.arange(_BEFORE, _BEFORE + _LENGTH, dtype=np.int32)
        is_seen = np.arange(capacity) <= positions[:, None]
        shape = (1, sizes.key_heads, capacity, sizes.head_features)
        return {
            "tokens": rng.integers(sizes.vocabulary, size=(1, _LENGTH), dtype=np.int32),
            "positions": positions,
            "mask": np.where(is_seen, 0, -1e9).astype(np.float32)[None, None],
            "cache": [
                tuple(rng.normal(size=shape).astype(np.float32) for _ in range(2))
                for _ in range(sizes.layers)
            ],
        }

    adapt = functools.partial(scaled, sizes=sizes)
    dimensions = {"capacity": capacity}
    return Model(name, variables, apply, draw, dimensions, tolerance=1e-4, adapt=adapt)
