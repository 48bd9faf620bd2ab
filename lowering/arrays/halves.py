"""Words (uint32) in halves: the upper and the lower 16 bits of each, as int32 from 0 to 65535.

Targets whose integers are exact to 24 bits compute with them. Functions here are of words, as
programs have them. The pass `legalize.words` puts halves in the place of words, so that nothing is
left of `apart` and `join`.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
from jax import lax

from lowering import registry
from lowering.arrays.exact import HALF, elementwise
from lowering.arrays.words import WORD

Halves: TypeAlias = tuple[Any, Any]

# One more than the largest half.
SIZE = 1 << 16

JOIN, APART = map(registry.new_primitive, ("join_halves", "halves_of_words"))
APART.multiple_results = True


@JOIN.def_abstract_eval
def _(high: Any, low: Any) -> Any:
    return jax.core.ShapedArray(high.shape, WORD)


@APART.def_abstract_eval
def _(x: Any) -> Any:
    return [jax.core.ShapedArray(x.shape, HALF)] * 2


def apart(x: jax.Array) -> Halves:
    """The halves of words."""
    high, low = APART.bind(x)
    return high, low


def join(high: jax.Array, low: jax.Array) -> jax.Array:
    """The words of halves."""
    return JOIN.bind(high, low)


def of_short(x: jax.Array) -> jax.Array:
    """The words of integers from 0 to 65535, or of bools."""
    return join(lax.full(x.shape, 0, HALF), x.astype(HALF))


def on_halves(fun: Callable[..., Any], *operands: Any, **params: Any) -> Any:
    """The results of a function that moves elements, on words: of the upper, and the lower halves.

    Args:
      fun: takes and returns arrays of int32 in place of the words, and others as they are.
      *operands: arrays; those of words are moved.
      **params: of the function.
    """
    parts = [apart(x) if x.dtype == WORD else (x, x) for x in operands]
    return join(*(fun(*(part[i] for part in parts), **params) for i in range(2)))


# The int32 with the bits of words, which are exact if they have 24 bits, and the inverse of that.
BITS, OF_BITS = elementwise("bits_of_halves", [HALF]), elementwise("halves_of_bits")
