"""PRNG keys, and the random bits that are drawn with them."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from lowering import jax_compat, registry
from lowering.arrays import uint32, uint32_parts
from lowering.arrays.uint32 import UINT32
from lowering.narrow_formats import SHORT
from lowering.registry import Trait, on_key_data, on_promoted, rule


@on_key_data("random_wrap", "random_unwrap", "random_clone")
def random_wrap(data, **_):
    return data


@rule("random_clone", in_storage=True, traits=Trait.SELECTS)
def random_clone(ctx, data, **_):
    """The same key data, which a pass has put in place of the keys."""
    return data


for _fun in (
    jax_compat.random_seed,
    jax_compat.random_split,
    jax_compat.random_fold_in,
    jax_compat.random_bits,
):
    on_key_data(_fun.__name__, traits=Trait.LONG)(_fun)


@rule("random", in_storage=True, traits=Trait.LONG)
def random(ctx, *operands, name, storage=None, **params):
    """Computes what a primitive does with keys, on their data, in a function of the graph."""
    fun = registry.facts(name).on_key_data
    if storage is not None:
        fun, params = _stored, {"name": name, "storage": storage, **params}
    return ctx.lower(fun, *operands, avals=ctx.in_avals, as_function=True, **params)


def _stored(*operands, name, storage, **params):
    fun: Any = registry.facts(name).on_key_data
    return fun(*operands, **params).astype(storage)


@rule("random_of_parts", keep_constants=True, in_storage=True, traits=Trait.LONG)
def random_of_parts(ctx, *operands, **params):
    return ctx.lower(_random_of_parts, *operands, avals=ctx.in_avals, as_function=True, **params)


# By the number of values that stand for a uint32: what makes it of them, and the inverse.
_PARTS: Mapping[int, tuple[Callable[..., Any], Callable[..., Any]]] = {
    1: (uint32.of_bits, lambda x: [uint32.bits_of(x)]),
    2: (uint32_parts.join, uint32_parts.split),
}


def _random_of_parts(*operands, split, count, name, storage=None, **params):
    """The same where `count` values stand for a uint32, in operands (`split`) and results."""
    join, parts_of = _PARTS[count]
    rest = iter(operands)
    logical = [
        join(*itertools.islice(rest, count)) if is_split else next(rest) for is_split in split
    ]
    fun: Any = registry.facts(name).on_key_data
    found = fun(*logical, **params)
    found = found if storage is None else found.astype(storage)
    return list(parts_of(found)) if found.dtype == UINT32 else [found]


@on_promoted("random", "random_of_parts", dtypes=SHORT)
def random_short(*operands, primitive, dtypes, storages, **params):
    """Random bits are in the range of their dtype; a seed may be short, too."""
    storage = storages[0] if len(storages) == 1 else None
    return primitive.bind(*operands, storage=storage, **params)
