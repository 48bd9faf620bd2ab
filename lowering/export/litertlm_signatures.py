"""Checks that signatures and a tokenizer are those that LiteRT-LM takes."""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from lowering.export.descriptions import DECODE
from lowering.export.entry import Entry
from lowering.export.language_models import (
    CACHE,
    LOGITS,
    MASK,
    MASK_DTYPES,
    POSITIONS,
    PREFILL,
    TOKENS,
)

# The axis of a cache in which LiteRT-LM counts positions, if there is no mask.
_PLACES = 2

# The dtypes of logits that LiteRT-LM chooses tokens by.
_LOGITS_DTYPES = ("float32", "float16")

# Vocabularies of models are padded: to a multiple of 128, or by two in a hundred at most.
_MULTIPLE = 128
_PADDING = 0.02


def inputs(entry: Entry) -> dict[str, tf.TensorSpec]:
    """The inputs of a signature by name."""
    return {spec.name: spec for spec in entry.specs}


def check(made: Mapping[str, Entry], max_tokens: int | None = None) -> int:
    """How many tokens the cache of some signatures has room for.

    Args:
      made: the entries of all signatures.
      max_tokens: the number, of signatures without a mask.

    Raises:
      ValueError: if LiteRT-LM does not take the signatures.
    """
    prefills = [name for name in made if name.startswith(PREFILL)]
    if DECODE not in made or not prefills:
        raise ValueError(
            f"LiteRT-LM calls {DECODE!r} and functions whose names begin with {PREFILL!r}; "
            f"found {', '.join(made)}"
        )
    specs = {name: inputs(made[name]) for name in (DECODE, *prefills)}
    for name, of_signature in specs.items():
        _check_inputs(name, of_signature)
    columns = {name: x[MASK].shape[3] for name, x in specs.items() if MASK in x}
    if len(set(columns.values())) > 1 or len(columns) not in (0, len(specs)):
        raise ValueError(f"the masks of signatures have different columns: {columns}")
    limit = min(columns.values()) if columns else max_tokens
    if limit is None:
        raise ValueError("without a mask, max_tokens has to say how many tokens the cache holds")
    if max_tokens is not None and max_tokens > limit:
        raise ValueError(f"max_tokens is {max_tokens}, and the cache has room for {limit}")
    caches = {f"the inputs of {name}": _of_cache(x.items()) for name, x in specs.items()}
    _check_alike(caches)
    for name in specs:
        results = made[name].concrete.structured_outputs
        caches[f"the results of {name}"] = _of_cache(results.items())
    _check_alike(caches)
    limit = limit if max_tokens is None else max_tokens
    if not columns:
        _check_places(specs[DECODE], limit)
    return limit


def _check_places(decode: Mapping[str, tf.TensorSpec], limit: int) -> None:
    """Raises a ValueError if LiteRT-LM would misread the size of a cache; only a mask tells it."""
    name = f"{CACHE}k_0"
    axes = tuple(decode[name].shape) if name in decode else ()
    if len(axes) <= _PLACES or axes[_PLACES] < limit:
        raise ValueError(
            f"without a mask, LiteRT-LM takes the third axis of {name} for the places of the "
            f"cache; its shape is {axes}, and max_tokens is {limit}. Swap its axes in the step, "
            'or let prefill_decode give the step a mask (mask="float32"), which it may ignore'
        )


def _check_alike(caches: Mapping[str, Mapping[str, str]]) -> None:
    """Raises a ValueError if the caches of the signatures differ in shapes or dtypes."""
    (first, expected), *others = caches.items()
    for place, found in others:
        for name in sorted({*expected, *found}):
            one, other = (x.get(name, "missing") for x in (expected, found))
            if one != other:
                raise ValueError(
                    "all signatures have to take and return caches of the same shapes: "
                    f"{name} is {one} in {first}, and {other} in {place}"
                )


def _check_inputs(name: str, specs: Mapping[str, tf.TensorSpec]) -> None:
    """Raises a ValueError if the inputs of a signature are not those that LiteRT-LM passes."""
    for key, spec in specs.items():
        if None in spec.shape.as_list():
            raise ValueError(
                f"{name} has a symbolic length, as {key} is {spec.shape}; LiteRT-LM takes models "
                "of known shapes: export a prefill for each of several lengths, and one decode"
            )
    others = [x for x in specs if x not in (TOKENS, POSITIONS, MASK) and not x.startswith(CACHE)]
    missing = [x for x in (TOKENS, POSITIONS) if x not in specs]
    missing += [x for x in "kv" if not any(key.startswith(f"{CACHE}{x}_") for key in specs)]
    if others or missing:
        raise ValueError(
            f"LiteRT-LM gives {name} the inputs {TOKENS}, {POSITIONS}, {MASK} and those of the "
            f"cache, {CACHE}k_0, {CACHE}v_0 and so on, at least one of k and one of v; a model of "
            f"one state keeps a second one that it does not read; found {', '.join(specs)}"
        )
    length = 1 if name == DECODE else specs[TOKENS].shape[-1]
    expected = {TOKENS: (1, length), POSITIONS: (length,)}
    if MASK in specs:
        expected[MASK] = (1, 1, length, specs[MASK].shape[-1])
    for key, shape in expected.items():
        dtypes = MASK_DTYPES if key == MASK else ("int32",)
        if tuple(specs[key].shape) != shape or specs[key].dtype.name not in dtypes:
            raise ValueError(
                f"{key} of {name} has to be {' or '.join(dtypes)} {list(shape)}; found "
                f"{specs[key].dtype.name} {specs[key].shape}"
            )


def _of_cache(named: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """The shapes and dtypes of what belongs to the cache, by name."""
    return {name: f"{x.dtype.name} {x.shape}" for name, x in named if name.startswith(CACHE)}


def check_vocabulary(decode: Entry, size: int) -> None:
    """Raises a ValueError if the logits are not those of a tokenizer with so many tokens."""
    logits = decode.concrete.structured_outputs.get(LOGITS)
    if logits is None or logits.shape.rank != 3 or tuple(logits.shape[:2]) != (1, 1):
        raise ValueError(f"{DECODE} has to return {LOGITS}, [1, 1, vocabulary]; found {logits}")
    if logits.dtype.name not in _LOGITS_DTYPES:
        raise ValueError(
            f"{LOGITS} of {DECODE} has to be {' or '.join(_LOGITS_DTYPES)}, by which LiteRT-LM "
            f"chooses tokens; found {logits.dtype.name}"
        )
    count = logits.shape[2]
    padded = -(-size // _MULTIPLE) * _MULTIPLE
    if not size <= count <= max(padded, size * (1 + _PADDING)):
        raise ValueError(
            f"the tokenizer is one of another vocabulary: it has {size} tokens, and the model "
            f"logits of {count}"
        )
