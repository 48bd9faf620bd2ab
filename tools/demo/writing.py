"""The third program of the demo: a small language model that writes a text, a character a step.

Another one draws the random numbers of a text, so that a step is nothing but the model.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harnesses.models import decoder_layers
from harnesses.models.decoder_linen import network
from harnesses.models.parameters import random_parameters
from lowering.export.language_models import causal_mask

# How many characters a text has, its beginning included: the capacity of the cache.
CAPACITY = 160

# A lower temperature is as good as none: the most probable token is chosen.
_COLDEST = 1e-4

# A token is a character of ASCII.
SIZES = dataclasses.replace(
    decoder_layers.QWEN, vocabulary=128, layers=2, features=128, key_heads=1, hidden=384, base=1e4
)

_variables, _step = network(SIZES)


def init(seed: int) -> dict:
    """Returns the parameters of an untrained model."""
    return decoder_layers.scaled(random_parameters(_variables, seed=seed), SIZES)


def logits(params: dict, tokens: jax.Array) -> jax.Array:
    """The logits of the token after each, float32 [length, 128]; tokens are int32 [length]."""
    (length,) = tokens.shape
    positions = jnp.arange(length)
    mask = causal_mask(np.arange(length), length, "float32")
    return _step(params, tokens[None], positions, mask, SIZES.empty(length))[0][0]


def draw(seed: jax.Array) -> dict[str, jax.Array]:
    """A random number from 0 to 1 for each position of a text, by its seed, an int32."""
    return {"uniform": jax.random.uniform(jax.random.key(seed), (CAPACITY,))}


def write(
    params: dict,
    token: jax.Array,
    position: jax.Array,
    uniform: jax.Array,
    temperature: jax.Array,
    cache: decoder_layers.Cache,
) -> dict[str, jax.Array]:
    """Reads a token, and chooses the next one.

    Args:
      params: the parameters of the model.
      token: int32 [1, 1].
      position: that of the token in the text, int32 [1].
      uniform: a random float32 from 0 to 1, which says what is chosen.
      temperature: a float32. If it is 0, the most probable token is chosen.
      cache: keys and values of each layer.

    Returns:
      The token as `next`, int32 [1, 1], and the cache as `new_k_0`, `new_v_0` and so on.
    """
    mask = jnp.where(jnp.arange(CAPACITY) <= position, 0.0, -1e9)[None, None, None]
    of_next, updated = _step(params, token, position, mask, cache)
    probabilities = jax.nn.softmax(of_next / jnp.maximum(temperature, _COLDEST))
    # The first token up to which the probabilities exceed the number.
    before = jnp.sum(jnp.cumsum(probabilities, axis=-1) <= uniform, axis=-1, dtype=jnp.int32)
    chosen = jnp.minimum(before, SIZES.vocabulary - 1)
    return {"next": chosen, **_named(updated, "new_")}


def inputs() -> dict[str, Any]:
    """Example inputs of `write` by name: no text yet."""
    cache = _named(SIZES.empty(CAPACITY))
    return {
        "token": np.zeros((1, 1), np.int32),
        "position": np.zeros(1, np.int32),
        "uniform": np.float32(0),
        "temperature": np.float32(0),
        **{name: np.zeros(x.shape, np.float32) for name, x in cache.items()},
    }


def arguments(named: dict[str, Any]) -> tuple:
    """The arguments of `write` from inputs by name, as `inputs` returns them."""
    first = [named[name] for name in ("token", "position", "uniform", "temperature")]
    return *first, [(named[f"k_{i}"], named[f"v_{i}"]) for i in range(SIZES.layers)]


def text(params: dict, beginning: str, seed: int, temperature: float) -> str:
    """The text that JAX writes after a beginning, which is a part of it.

    Args:
      params: the parameters of the model.
      beginning: characters of ASCII, one at least and fewer than the capacity.
      seed: that of the choice of tokens.
      temperature: how often improbable tokens are chosen.
    """
    written, given = list(beginning.encode("ascii")), inputs()
    uniform = np.asarray(draw(jnp.int32(seed))["uniform"])
    for position in range(CAPACITY - 1):
        given |= {
            "token": np.full((1, 1), written[position], np.int32),
            "position": np.full(1, position, np.int32),
            "uniform": uniform[position],
            "temperature": np.float32(temperature),
        }
        results = _compiled(params, *arguments(given))
        given |= {name.removeprefix("new_"): x for name, x in results.items() if name != "next"}
        if position + 1 == len(written):
            written.append(int(results["next"][0, 0]))
    return bytes(written).decode("ascii")


_compiled = jax.jit(write)


def _named(cache: decoder_layers.Cache, prefix: str = "") -> dict[str, jax.Array]:
    return {
        f"{prefix}{kind}_{i}": x
        for i, of_layer in enumerate(cache)
        for kind, x in zip("kv", of_layer, strict=True)
    }
