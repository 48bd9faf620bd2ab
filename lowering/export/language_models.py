"""Language models as runtimes on devices call them: prefill, decode, and a cache between the calls.

A prefill reads a chunk of a prompt and writes its keys and values to the cache; decode reads one
token and returns the logits of the next. Names and layouts are those that LiteRT-LM expects of a
model of its kind `PREFILL_DECODE`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering.export.descriptions import DECODE
from lowering.export.entry import Entry

PREFILL = "prefill"
TOKENS = "tokens"
POSITIONS = "input_pos"
MASK = "mask"
LOGITS = "logits"
CACHE = "kv_cache_"

# LiteRT-LM adds this to the scores of tokens that are masked, where the mask is of float32.
UNSEEN = -0.7 * float(np.finfo(np.float32).max)

# The axis of a cache in which LiteRT-LM counts positions, if there is no mask.
_PLACES = 2

# The dtypes that a mask may have.
MASK_DTYPES = ("float32", "bool")

# How many tokens are in an example of a call of any length.
_EXAMPLE = 8

# Vocabularies of models are padded: to a multiple of 128, or by two in a hundred at most.
_MULTIPLE = 128
_PADDING = 0.02


def prefill_decode(
    step: Callable[..., Any],
    cache: Any,
    capacity: int,
    *,
    prefill: Sequence[int],
    params: Any = None,
    mask: str | None = "float32",
) -> dict[str, Any]:
    """The arguments of `to_litertlm`, or of another export, for one function of a language model.

        model = export.to_tflite(**export.prefill_decode(step, cache, 1024, prefill=(32, 256)))

    The batch is 1. The last chunk of a prompt may be shorter than the prefill that reads it: then
    it ends with padding, of which the keys and values are overwritten before they are seen. The
    positions of padding follow those of the tokens. So it may reach beyond the capacity, where
    `dynamic_update_slice` would move the write to the front.

    Args:
      step: `step(params, tokens, positions, mask, cache)` returns the logits of the token after
        each token, [1, length, vocabulary], and the cache with the tokens. Tokens are int32
        [1, length], their positions int32 [length], and the mask [1, 1, length, capacity]. Without
        `params` and without a mask it lacks those arguments.
      cache: a pytree of arrays or `jax.ShapeDtypeStruct`s, whose leaves are the keys and the values
        of each layer in turn, such as a list of pairs.
      capacity: how many tokens the cache has room for.
      prefill: the lengths of prefills.
      params: a pytree of arrays, which the model keeps once.
      mask: the dtype of the mask: "float32" if it is added to scores, with large negative numbers
        where a token is not seen; "bool" if it is True where one is seen; None if the step computes
        what it sees from the positions.

    Raises:
      ValueError: for lengths beyond the capacity, a cache whose leaves are no pairs, or an unknown
        dtype of the mask.
      TypeError: if the step returns something else, or a cache of other shapes.
    """
    lengths = sorted(set(prefill))
    if not lengths or lengths[0] < 1 or lengths[-1] > capacity:
        raise ValueError(f"prefill takes lengths from 1 to {capacity}, the capacity; not {prefill}")
    model = _Model(step, cache, capacity, params, mask)
    kept = model.names_of_cache

    def prefilled(*args: Any) -> list[Any]:
        """The cache. Padding follows the tokens: LiteRT-LM says that its positions are 0."""
        *before, positions = args[: model.place_of_positions + 1]
        positions = positions[0] + np.arange(positions.shape[0], dtype=np.int32)
        return model.call(*before, positions, *args[len(before) + 1 :])[1:]

    names = {f"{PREFILL}_{length}": length for length in lengths} | {DECODE: 1}
    return {
        "fun": {name: model.call if name == DECODE else prefilled for name in names},
        "args": {name: model.arguments(length) for name, length in names.items()},
        "params": params,
        "input_names": {name: model.names_of_inputs for name in names},
        "output_names": {name: [LOGITS, *kept] if name == DECODE else kept for name in names},
    }


def decode_any_length(
    step: Callable[..., Any],
    cache: Any,
    capacity: int,
    *,
    params: Any = None,
    mask: str | None = "float32",
) -> dict[str, Any]:
    """The arguments of an export of one function that reads prompts of any length, and writes.

        export.to_onnx(**export.decode_any_length(step, cache, 1024), path="model.onnx")

    The length is symbolic, called "length". The function returns the logits after each token, and
    the cache, whose names have "new_" in front: ONNX has one name for one array.

    Args:
      step: as for `prefill_decode`; it has to take a symbolic length.
      cache: as for `prefill_decode`, and so are the others.
      capacity: how many tokens the cache has room for.
      params: a pytree of arrays, which the model keeps.
      mask: the dtype of the mask.

    Raises:
      ValueError: for a cache whose leaves are no pairs, or an unknown dtype of the mask.
      TypeError: if the step returns something else, or a cache of other shapes.
    """
    model = _Model(step, cache, capacity, params, mask)
    args = model.arguments(min(_EXAMPLE, capacity))
    of_mask = [] if mask is None else ["_, _, length, _"]
    return {
        "fun": model.call,
        "args": args,
        "params": params,
        "polymorphic_shapes": ["_, length", "length", *of_mask, None],
        "polymorphic_constraints": [f"length <= {capacity}"],
        "input_names": model.names_of_inputs,
        "output_names": [LOGITS, *(f"new_{name}" for name in model.names_of_cache)],
    }


class _Model:
    """A language model as functions of flat results, and what they are called with.

    The arguments are those of `prefill_decode`.

    Raises:
      ValueError: for a cache whose leaves are no pairs, or an unknown dtype of the mask.
      TypeError: if the step returns something else, or a cache of other shapes.
    """

    def __init__(
        self, step: Callable[..., Any], cache: Any, capacity: int, params: Any, mask: str | None
    ):
        if mask is not None and mask not in MASK_DTYPES:
            raise ValueError(f"mask is one of {', '.join(MASK_DTYPES)}, or None; not {mask!r}")
        specs, tree = jax.tree_util.tree_flatten(cache)
        if not specs or len(specs) % 2:
            raise ValueError(
                "the leaves of a cache are the keys and the values of each layer in turn; "
                f"found {len(specs)} leaves"
            )
        self._step, self._capacity, self._mask = step, capacity, mask
        self._rng = np.random.default_rng(0)
        kept = [self._rng.standard_normal(x.shape, np.float32).astype(x.dtype) for x in specs]
        self._cache = jax.tree_util.tree_unflatten(tree, kept)
        self.names_of_cache = [
            f"{CACHE}{kind}_{i}" for i in range(len(specs) // 2) for kind in "kv"
        ]
        self.place_of_positions = 1 if params is None else 2
        of_mask = [] if mask is None else [MASK]
        self.names_of_inputs = [TOKENS, POSITIONS, *of_mask, *self.names_of_cache]
        self._vocabulary = 1
        first = () if params is None else (params,)
        self._vocabulary = _vocabulary(step, (*first, *self.arguments(1)), specs)

    def call(self, *args: Any) -> list[Any]:
        """The logits, and the leaves of the cache."""
        logits, updated = self._step(*args)
        return [logits, *jax.tree_util.tree_leaves(updated)]

    def arguments(self, length: int) -> tuple[Any, ...]:
        """The arguments of a call in the middle of the cache, without parameters.

        Tokens are random.
        """
        positions = np.arange(length, dtype=np.int32) + (self._capacity - length) // 2
        tokens = self._rng.integers(self._vocabulary, size=(1, length), dtype=np.int32)
        of_mask = []
        if self._mask is not None:
            of_mask.append(causal_mask(positions, self._capacity, self._mask))
        return tokens, positions, *of_mask, self._cache


def causal_mask(positions: np.ndarray, capacity: int, dtype: Any) -> np.ndarray:
    """A mask, [1, 1, length, capacity], of all tokens up to each of some positions."""
    seen = (np.arange(capacity) <= positions[:, None])[None, None]
    return seen if np.dtype(dtype) == bool else np.where(seen, 0, UNSEEN).astype(dtype)


def _vocabulary(step: Callable[..., Any], args: tuple[Any, ...], cache: Sequence[Any]) -> int:
    """The size of the vocabulary, from the logits of a decode step.

    Raises:
      TypeError: if it returns no logits of one token, or a cache of other shapes and dtypes.
    """
    found = jax.eval_shape(step, *args)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise TypeError(f"the step has to return (logits, cache), not {found!r}")
    logits, updated = found
    if getattr(logits, "ndim", None) != 3 or logits.shape[:2] != (1, 1):
        raise TypeError(f"expected logits of one token, [1, 1, vocabulary]; found {logits!r}")
    leaves = jax.tree_util.tree_leaves(updated)
    before, after = ([(tuple(x.shape), np.dtype(x.dtype).name) for x in c] for c in (cache, leaves))
    if before != after:
        raise TypeError(
            f"the step has to return a cache like the one it is given, {before}; found {after}"
        )
    return logits.shape[2]


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
    if max_tokens is not None and not 0 < max_tokens <= limit:
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
    if others or missing or not any(x.startswith(CACHE) for x in specs):
        raise ValueError(
            f"LiteRT-LM gives {name} the inputs {TOKENS}, {POSITIONS}, {MASK} and those of the "
            f"cache, {CACHE}k_0 and so on; found {', '.join(specs)}"
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
    count = logits.shape[2]
    padded = -(-size // _MULTIPLE) * _MULTIPLE
    if not size <= count <= max(padded, size * (1 + _PADDING)):
        raise ValueError(
            f"the tokenizer is one of another vocabulary: it has {size} tokens, and the model "
            f"logits of {count}"
        )
