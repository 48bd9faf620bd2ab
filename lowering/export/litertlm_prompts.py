"""Checks, in JAX, that a model reads prompts as LiteRT-LM passes them, with padding.

LiteRT-LM fills the last chunk of a prompt with padding, and does not clear the cache between two
conversations. Attention sees neither, as the mask hides both. A state that is carried from token to
token, as that of an LSTM, contains both, unless the model takes care.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from lowering.export import language_models, litertlm_signatures, precision
from lowering.export.descriptions import DECODE
from lowering.export.entry import Entry
from lowering.export.language_models import CACHE, LOGITS, MASK, POSITIONS, PREFILL, TOKENS

_ADVICE = (
    "attention hides them by its mask; a state that is carried from token to token, as in a "
    "recurrent network, has to"
)


def check(made: Mapping[str, Entry]) -> None:
    """Reads the shortest prompt of each prefill, which has the most padding, and writes a token.

    Args:
      made: the entries of the signatures, which LiteRT-LM takes.

    Raises:
      ValueError: if padding, or what was in the cache, changes the logits.
    """
    decode = made[DECODE]
    rng = np.random.default_rng(0)
    vocabulary = int(decode.concrete.structured_outputs[LOGITS].shape[2])
    used = {name: x for name, x in _by_name(decode).items() if name.startswith(CACHE)}
    empty = {name: np.zeros_like(x) for name, x in used.items()}
    # Numbers that are rounded in another order agree in more than half of their digits.
    epsilon = precision.epsilons(decode.reference, decode.samples)[decode.outputs.index(LOGITS)]
    tolerance = max(epsilon, float(np.finfo(np.float32).eps)) ** 0.5
    prefills = {
        litertlm_signatures.inputs(entry)[TOKENS].shape[1]: entry
        for name, entry in made.items()
        if name.startswith(PREFILL)
    }
    # Of the prefills that a chunk fits into, LiteRT-LM takes the shortest one.
    for shorter, length in itertools.pairwise([0, *sorted(prefills)]):
        entry, count = prefills[length], shorter + 1
        tokens = rng.integers(vocabulary, size=(1, length), dtype=np.int32)
        padded = np.where(np.arange(length) < count, tokens, 0)
        expected = _logits(entry, decode, padded, count, empty)
        largest = np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
        accepted = {"rtol": 0, "atol": tolerance * largest, "equal_nan": True}
        found = _logits(entry, decode, tokens, count, empty)
        if not np.allclose(found, expected, **accepted):
            raise ValueError(
                "the logits depend on tokens of padding, with which LiteRT-LM fills the last chunk "
                f"of a prompt: {_ADVICE} stay as it is where the mask of a token hides all places; "
                "a cache of the last tokens alone needs places for a window and the longest "
                "prefill, less one"
            )
        found = _logits(entry, decode, padded, count, used)
        if not np.allclose(found, expected, **accepted):
            raise ValueError(
                "the logits depend on numbers of the cache that no token of the prompt has "
                f"written, and LiteRT-LM does not clear it between conversations: {_ADVICE} begin "
                f"with its first value where {POSITIONS}[0] is 0"
            )


def _logits(
    prefill: Entry, decode: Entry, tokens: np.ndarray, count: int, cache: Mapping[str, np.ndarray]
) -> np.ndarray:
    """The logits of decode after a prefill of `count` tokens, and of padding behind them."""
    positions = np.where(np.arange(tokens.shape[1]) < count, np.arange(tokens.shape[1]), 0)
    read = _run(prefill, tokens, positions.astype(np.int32), count, cache)
    kept = {name: read[name] for name in cache}
    one, place = np.zeros((1, 1), np.int32), np.full(1, count, np.int32)
    return np.asarray(_run(decode, one, place, 1, kept)[LOGITS], np.float32)


def _run(
    entry: Entry,
    tokens: np.ndarray,
    positions: np.ndarray,
    count: int,
    cache: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """The results by name, of a call with `count` tokens, and with padding, which sees nothing."""
    inputs: dict[str, Any] = {TOKENS: tokens, POSITIONS: positions, **cache}
    mask = _by_name(entry).get(MASK)
    if mask is not None:
        places = np.where(np.arange(len(positions)) < count, positions, -1)
        inputs[MASK] = language_models.causal_mask(places, mask.shape[3], mask.dtype)
    results = entry.reference(*(inputs[spec.name] for spec in entry.specs))
    return dict(zip(entry.outputs, results, strict=True))


def _by_name(entry: Entry) -> dict[str, np.ndarray]:
    return {spec.name: x for spec, x in zip(entry.specs, entry.samples, strict=True)}
