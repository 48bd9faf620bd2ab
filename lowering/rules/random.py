"""PRNG keys, and the random bits that are drawn with them."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from lowering import jax_compat, registry
from lowering.arrays import halves
from lowering.arrays import words as words_
from lowering.arrays.words import WORD
from lowering.narrow_formats import SHORT
from lowering.registry import Trait, on_promoted, on_words, rule


@on_words("random_wrap", "random_unwrap", "random_clone")
def random_wrap(words, **_):
    return words


@rule("random_clone", in_storage=True, traits=Trait.SELECTS)
def random_clone(ctx, words, **_):
    """The same words; passes have put arrays of words in the place of keys."""
    return words


for _fun in (
    jax_compat.random_seed,
    jax_compat.random_split,
    jax_compat.random_fold_in,
    jax_compat.random_bits,
):
    on_words(_fun.__name__, traits=Trait.LONG)(_fun)


@rule("random", in_storage=True, traits=Trait.LONG)
def random(ctx, *operands, name, storage=None, **params):
    """What a primitive does with keys, on their words, as a function of the graph."""
    fun = registry.facts(name).on_words
    if storage is not None:
        fun, params = _stored, {"name": name, "storage": storage, **params}
    return ctx.lower(fun, *operands, avals=ctx.in_avals, as_function=True, **params)


def _stored(*operands, name, storage, **params):
    fun: Any = registry.facts(name).on_words
    return fun(*operands, **params).astype(storage)


@rule("random_of_parts", keep_constants=True, in_storage=True, traits=Trait.LONG)
def random_of_parts(ctx, *operands, **params):
    return ctx.lower(_random_of_parts, *operands, avals=ctx.in_avals, as_function=True, **params)


# By the number of parts of words, what makes words of them, and the inverse of that.
_PARTS: Mapping[int, tuple[Callable[..., Any], Callable[..., Any]]] = {
    1: (words_.of_bits, lambda x: [words_.bits_of(x)]),
    2: (halves.join, halves.apart),
}


def _random_of_parts(*operands, words, count, name, storage=None, **params):
    """The same of parts of words, which it returns, too."""
    join, apart = _PARTS[count]
    rest = iter(operands)
    whole = [join(*itertools.islice(rest, count)) if is_word else next(rest) for is_word in words]
    fun: Any = registry.facts(name).on_words
    found = fun(*whole, **params)
    found = found if storage is None else found.astype(storage)
    return list(apart(found)) if found.dtype == WORD else [found]


@on_promoted("random", "random_of_parts", dtypes=SHORT)
def random_short(*operands, primitive, dtypes, storages, **params):
    """Random bits are in the range of their dtype; a seed may be short, too."""
    storage = storages[0] if len(storages) == 1 else None
    return primitive.bind(*operands, storage=storage, **params)
