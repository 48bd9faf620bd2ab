"""Arithmetic of int32 by ops that are exact in runtimes whose integers are exact to 24 bits.

Operands that are known when a function is traced are NumPy arrays, and are computed with at once.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import registry
from lowering.arrays.uint32 import INT32

ZERO = np.zeros((), INT32)


def elementwise(name: str, dtypes: Sequence[Any] = (INT32, INT32)) -> jex_core.Primitive:
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


PRODUCT, QUOTIENT, REMAINDER, LOOK_UP, TO_INTEGERS = (
    elementwise(f"exact_{name}", [INT32])
    for name in ("product", "quotient", "remainder", "elements", "integers")
)
# Bitwise operations on numbers of 16 bits: x and y, or (x_high, x_low) and (y_high, y_low).
BITWISE = registry.new_primitive("exact_bitwise")
BITWISE.multiple_results = True


@BITWISE.def_abstract_eval
def _(*operands: Any, op: str) -> Any:
    shape = lax.broadcast_shapes(*(x.shape for x in operands))
    return [jax.core.ShapedArray(shape, INT32)] * (len(operands) // 2)


def is_known(*arrays: Any) -> bool:
    """Whether arrays are known when a function is traced."""
    return all(isinstance(x, np.ndarray | np.generic) for x in arrays)


def known(number: Any) -> Any:
    """An integer as a known array; an array as it is."""
    return np.asarray(number, INT32) if isinstance(number, int) else number


def is_all(x: Any, number: int) -> bool:
    """Whether all elements are known to be a number."""
    return is_known(x) and bool(np.all(x == number))


def plus(x: Any, y: Any) -> Any:
    """The sum."""
    y = known(y)
    if is_known(x, y):
        return x + y
    if is_all(x, 0):
        return y
    return x if is_all(y, 0) else x + y


def minus(x: Any, y: Any) -> Any:
    """The difference."""
    x, y = known(x), known(y)
    if is_known(x, y):
        return x - y
    if is_all(x, 0):
        # TensorFlow's optimizer would make a negation, which is not exact for integers on webgl.
        return times(y, -1)
    return x if is_all(y, 0) else x - y


def times(x: Any, y: Any) -> Any:
    """The product."""
    y = known(y)
    if is_known(x, y):
        return x * y
    if is_all(x, 0) or is_all(y, 0):
        return ZERO
    if is_all(x, 1):
        return y
    return x if is_all(y, 1) else PRODUCT.bind(x, y)[0]


def quotient(x: Any, y: Any) -> Any:
    """The quotient, rounded down."""
    y = known(y)
    if is_known(x, y):
        return x // y
    return x if is_all(y, 1) else QUOTIENT.bind(x, y)[0]


def remainder(x: Any, y: Any) -> Any:
    """The remainder of `quotient`."""
    y = known(y)
    if is_known(x, y):
        return x % y
    return ZERO if is_all(y, 1) else REMAINDER.bind(x, y)[0]


def where(which: Any, x: Any, y: Any) -> Any:
    """`jnp.where`, or that of NumPy if all is known."""
    return (np.where if is_known(which, x, y) else jnp.where)(which, x, y)


def floor(x: Any) -> Any:
    """Floats rounded down."""
    return np.floor(x) if is_known(x) else lax.floor(x)


def to_integers(x: Any) -> Any:
    """Integers in float32 as int32."""
    return x.astype(INT32) if is_known(x) else TO_INTEGERS.bind(x)[0]


def looked_up(table: np.ndarray, index: Any) -> Any:
    """Elements of a table."""
    return table[index] if is_known(index) else LOOK_UP.bind(index, table=tuple(table.tolist()))[0]
