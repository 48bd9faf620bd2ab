"""uint32 split into two parts: the upper and the lower 16 bits, each as an int32 from 0 to 65535.

Targets whose integers are exact to 24 bits compute with these parts. Decompositions take and return
uint32, and use `split` and `join` to reach the parts. The pass `legalize.split_uint32` then puts
the parts in place of all uint32, and removes `split` and `join`.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
from jax import lax

from lowering import registry
from lowering.arrays.exact import elementwise
from lowering.arrays.uint32 import INT32, UINT32

# The upper and the lower 16 bits.
Parts: TypeAlias = tuple[Any, Any]

# uint32 = high * BASE + low.
BASE = 1 << 16

JOIN, SPLIT = map(registry.new_primitive, ("join_uint32", "split_uint32"))
SPLIT.multiple_results = True


@JOIN.def_abstract_eval
def _(high: Any, low: Any) -> Any:
    return jax.core.ShapedArray(high.shape, UINT32)


@SPLIT.def_abstract_eval
def _(x: Any) -> Any:
    return [jax.core.ShapedArray(x.shape, INT32)] * 2


def split(x: jax.Array) -> Parts:
    """The upper and the lower 16 bits of uint32."""
    high, low = SPLIT.bind(x)
    return high, low


def join(high: jax.Array, low: jax.Array) -> jax.Array:
    """The uint32 that have these upper and lower 16 bits."""
    return JOIN.bind(high, low)


def of_short(x: jax.Array) -> jax.Array:
    """Integers from 0 to 65535, or bools, as uint32."""
    return join(lax.full(x.shape, 0, INT32), x.astype(INT32))


def on_parts(fun: Callable[..., Any], *operands: Any, **params: Any) -> Any:
    """Applies a function that moves elements to the upper and to the lower 16 bits of uint32.

    Args:
      fun: takes and returns int32 in place of uint32, and operands of other dtypes as they are.
      *operands: arrays; the elements of those of uint32 are moved.
      **params: parameters of the function.
    """
    parts = [split(x) if x.dtype == UINT32 else (x, x) for x in operands]
    return join(*(fun(*(part[i] for part in parts), **params) for i in range(2)))


# The int32 with the same bits as parts, which is exact up to 24 bits; and the parts of an int32.
TO_INT32, OF_INT32 = elementwise("parts_to_int32", [INT32]), elementwise("parts_of_int32")
