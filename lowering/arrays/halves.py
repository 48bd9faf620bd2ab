"""Words (uint32) in halves: the upper and the lower 16 bits of each, as int32 from 0 to 65535.

Targets whose integers are exact to 24 bits compute with them. Functions here are of words, as
programs have them. The pass `legalize.words` puts halves in the place of words, so that nothing is
left of `apart` and `join`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import registry

Halves: TypeAlias = tuple[Any, Any]

# One more than the largest half.
SIZE = 1 << 16

WORD, HALF = np.dtype(np.uint32), np.dtype(np.int32)

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


def elementwise(name: str, dtypes: Sequence[Any] = (HALF, HALF)) -> jex_core.Primitive:
    """A primitive that treats all elements of its operands alike.

    Args:
      name: its name.
      dtypes: the dtypes of its results.
    """
    primitive = registry.new_primitive(name)
    primitive.multiple_results = True

    @primitive.def_abstract_eval
    def _(*operands: Any, **_: Any) -> Any:
        shape = lax.broadcast_shapes(*(x.shape for x in operands))
        return [jax.core.ShapedArray(shape, dtype) for dtype in dtypes]

    return primitive


def on_halves(fun: Callable[..., Any], *operands: Any, **params: Any) -> Any:
    """The results of a function that moves elements, on words: of the upper, and the lower halves.

    Args:
      fun: takes and returns arrays of int32 in place of the words, and others as they are.
      *operands: arrays; those of words are moved.
      **params: of the function.
    """
    parts = [apart(x) if x.dtype == WORD else (x, x) for x in operands]
    return join(*(fun(*(part[i] for part in parts), **params) for i in range(2)))


def places(x: jax.Array) -> jax.Array:
    """Indices that may be words as int32; what that does not hold is behind every array."""
    return PLACES.bind(*apart(x))[0] if x.dtype == WORD else x


# The int32 with the bits of words, which are exact if they have 24 bits, and the inverse of that.
BITS, OF_BITS = elementwise("bits_of_halves", [HALF]), elementwise("halves_of_bits")
# The places in an array that words are: those that int32 does not hold are behind every array.
PLACES = elementwise("places_of_halves", [HALF])

# Ops on halves that have to come out exactly, on int32 that fit into 24 bits: products, quotients
# and remainders that are rounded down, elements of a table, whole numbers of float32 as integers,
# and bitwise operations on the upper and lower halves of two words, or on one half of each.
PRODUCT, QUOTIENT, REMAINDER, LOOK_UP, TO_INTEGERS = (
    elementwise(f"{name}_of_halves", [HALF])
    for name in ("product", "quotient", "remainder", "elements", "integers")
)
BITWISE = registry.new_primitive("bitwise_of_halves")
BITWISE.multiple_results = True


@BITWISE.def_abstract_eval
def _(*operands: Any, op: str) -> Any:
    shape = lax.broadcast_shapes(*(x.shape for x in operands))
    return [jax.core.ShapedArray(shape, HALF)] * (len(operands) // 2)
