"""Words in halves, for targets whose integers are exact to fewer bits: see `arrays.halves`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering import avals
from lowering.arrays import halves
from lowering.arrays.halves import HALF
from lowering.ops import constant, emit
from lowering.ops.values import Value, is_known, tensor
from lowering.registry import Trait, decomposition, rule
from lowering.targets import TFJS
from lowering.tensors import halves as arithmetic

WORDS = (np.uint32,)


def elementwise(
    name: str,
    compute: Callable[..., Any],
    dtypes: Sequence[Any] = (HALF, HALF),
    traits: Trait = Trait.NONE,
) -> Any:
    """A primitive that treats all elements alike, and its rule.

    Args:
      name: its name.
      compute: a function of a context and of the operands, which may be known, as may be its
        results.
      dtypes: the dtypes of the results.
      traits: of the primitive, besides being elementwise.
    """

    @rule(name, keep_constants=True, traits=Trait.ELEMENTWISE | traits)
    def lower(ctx, *operands):
        found = compute(ctx, *operands)
        found = found if len(dtypes) > 1 else (found,)
        return [result(x, aval) for x, aval in zip(found, ctx.out_avals, strict=True)]

    return halves.elementwise(name, dtypes)


def result(x: Value, aval: Any) -> Value:
    """A result of a rule, which may be known, and smaller than its abstract value."""
    if not is_known(x):
        return x
    x = np.asarray(x, aval.dtype)
    return np.broadcast_to(x, aval.shape) if avals.is_static(aval.shape) else constant(x)


def register(
    computations: dict[str, Callable[..., Any]],
    dtypes: Sequence[Any] = (HALF, HALF),
    traits: Trait = Trait.NONE,
) -> None:
    """Registers what elementwise primitives do with words, as functions of halves.

    Args:
      computations: by the name of a primitive, a function of the pairs of halves of its operands.
      dtypes: the dtypes of what it returns: halves of words, or a single dtype.
      traits: of the primitives that compute it.
    """
    for primitive, compute in computations.items():
        own = elementwise(f"{primitive}_of_halves", _on_pairs(compute), dtypes, traits)
        decomposition(primitive, target=TFJS, dtypes=WORDS)(_of_words(own))


def _on_pairs(compute):
    return lambda ctx, *parts: compute(*zip(parts[::2], parts[1::2], strict=True))


def _of_words(own):
    def of_words(*operands, **_):
        results = own.bind(*(half for x in operands for half in halves.apart(x)))
        if len(results) == 1:
            return results[0]
        words = [halves.join(*pair) for pair in zip(results[::2], results[1::2], strict=True)]
        return words if len(words) > 1 else words[0]

    return of_words


@rule(halves.OF_BITS.name, keep_constants=True, traits=Trait.ELEMENTWISE)
def halves_of_bits(ctx, x):
    return [result(half, ctx.out_avals[0]) for half in arithmetic.of_int32(x)]


@rule(halves.BITS.name, keep_constants=True, traits=Trait.ELEMENTWISE)
def bits_of_halves(ctx, *parts):
    return result(arithmetic.to_int32(parts), ctx.out_aval)


@rule(halves.PLACES.name, keep_constants=True, traits=Trait.ELEMENTWISE)
def places_of_halves(ctx, high, low):
    last = constant(np.iinfo(np.int32).max, np.int32)
    is_large = emit("GreaterEqual", tensor(high), constant(halves.SIZE // 2, np.int32))
    return emit("SelectV2", is_large, last, tensor(arithmetic.to_int32((high, low))))
