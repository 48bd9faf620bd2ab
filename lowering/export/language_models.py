"""Language models as runtimes on devices call them: prefill, decode, and a cache between the calls.

A prefill reads a chunk of a prompt and writes its keys and values to the cache; decode reads one
token and returns the logits of the next. Names and layouts are those that LiteRT-LM expects of a
model of its kind `PREFILL_DECODE`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from lowering.export import calls, parameters
from lowering.export.arguments import check_count, check_leaf
from lowering.export.descriptions import DECODE
from lowering.frontend import functions

PREFILL = "prefill"
TOKENS = "tokens"
POSITIONS = "input_pos"
MASK = "mask"
LOGITS = "logits"
CACHE = "kv_cache_"

# LiteRT-LM adds this to the scores of tokens that are masked, where the mask is of float32.
UNSEEN = -0.7 * float(np.finfo(np.float32).max)

# The dtypes that a mask may have.
MASK_DTYPES = ("float32", "bool")

# How many tokens are in an example of a call of any length.
_EXAMPLE = 8


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
        of each layer in turn, such as a list of pairs; or the states of a recurrent network.
      capacity: how many tokens the cache has room for.
      prefill: the lengths of prefills.
      params: a pytree of arrays, which the model keeps once.
      mask: the dtype of the mask: "float32" if it is added to scores, with large negative numbers
        where a token is not seen; "bool" if it is True where one is seen; None if the step computes
        what it sees from the positions.

    Raises:
      ValueError: for lengths beyond the capacity, a cache without leaves, or an unknown
        dtype of the mask.
      TypeError: if the step takes or returns something else, or a cache of other shapes; for
        numbers that are not whole, and leaves that are no arrays.
    """
    check_count("capacity", capacity)
    if isinstance(prefill, str) or not isinstance(prefill, Iterable):
        raise TypeError(f"prefill is several lengths, such as (8, 64); found {prefill!r}")
    lengths = list(prefill)
    for length in lengths:
        check_count("a length of prefill", length)
    lengths = sorted(set(lengths))
    if not lengths or lengths[-1] > capacity:
        raise ValueError(f"prefill takes lengths from 1 to {capacity}, the capacity; not {lengths}")
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
      ValueError: for a cache without leaves, or an unknown dtype of the mask.
      TypeError: if the step takes or returns something else, or a cache of other shapes; for
        numbers that are not whole, and leaves that are no arrays.
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
      ValueError: for a cache without leaves, or an unknown dtype of the mask.
      TypeError: if the step takes or returns something else, or a cache of other shapes; for
        numbers that are not whole, and leaves that are no arrays.
    """

    def __init__(
        self, step: Callable[..., Any], cache: Any, capacity: int, params: Any, mask: str | None
    ):
        if mask is not None and mask not in MASK_DTYPES:
            raise ValueError(f"mask is one of {', '.join(MASK_DTYPES)}, or None; not {mask!r}")
        functions.check(step, "the step of a language model, a JAX function")
        check_count("capacity", capacity)
        specs, tree = jax.tree_util.tree_flatten(cache)
        _check_specs(cache)
        parameters.check_leaves(params)
        if not specs:
            raise ValueError("a cache has at least one array, such as the keys of a layer")
        self._step, self._capacity, self._mask = step, capacity, mask
        self._rng = np.random.default_rng(0)
        kept = [self._rng.standard_normal(x.shape, np.float32).astype(x.dtype) for x in specs]
        self._cache = jax.tree_util.tree_unflatten(tree, kept)
        self.names_of_cache = [f"{CACHE}{'kv'[i % 2]}_{i // 2}" for i in range(len(specs))]
        self.place_of_positions = 1 if params is None else 2
        of_mask = [] if mask is None else [MASK]
        self.names_of_inputs = [TOKENS, POSITIONS, *of_mask, *self.names_of_cache]
        self._vocabulary = 1
        first = () if params is None else (params,)
        given = (*first, *self.arguments(1))
        self._vocabulary = _vocabulary(step, given, specs, has_params=bool(first))

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


def _check_specs(cache: Any) -> None:
    """Raises a TypeError for leaves of a cache that are no arrays of known sizes."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(cache)[0]:
        where = jax.tree_util.keystr(path)
        check_leaf("cache", leaf, where=where)
        if not all(isinstance(size, int) for size in leaf.shape):
            raise TypeError(f"cache takes known sizes; found {leaf.shape} at cache{where}")


def _vocabulary(
    step: Callable[..., Any], args: tuple[Any, ...], cache: Sequence[Any], *, has_params: bool
) -> int:
    """The size of the vocabulary, from the logits of a decode step.

    Raises:
      TypeError: if it does not take the arguments, or returns no logits of one token, or a cache of
        other shapes and dtypes.
    """
    calls.check(step, args, has_params)
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
