"""Quotients and remainders by known numbers, as natural targets have ops for them.

JAX writes out how they are rounded; see `passes.fusion.natural`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.passes.fusion.exact import is_float, primitive_like_operand
from lowering.passes.fusion.patterns import Pattern

_FLOOR_DIVIDE = primitive_like_operand("floor_divide")
_FLOOR_MOD = primitive_like_operand("floor_mod")

_FLOATS = jax.ShapeDtypeStruct((2, 3), np.float32)
_NUMBER = jax.ShapeDtypeStruct((), np.float32)
_INTEGERS = jax.ShapeDtypeStruct((2, 3), np.int32)
_INTEGER = jax.ShapeDtypeStruct((), np.int32)
_UNSIGNED = jax.ShapeDtypeStruct((2, 3), np.uint32)
_UNSIGNED_NUMBER = jax.ShapeDtypeStruct((), np.uint32)


def _is_signed(x: Any, *others: Any) -> bool:
    return x.dtype in (np.int32, np.int64)


def _is_unsigned(x: Any, *others: Any) -> bool:
    return x.dtype.kind == "u"


def _is_divisor(y: Any) -> bool:
    """Whether TensorFlow divides by a number as JAX does."""
    return y not in (0, -1)


def _is_number(y: Any) -> bool:
    return y != 0 and np.isfinite(y)


def _is_power_of_two(y: Any) -> bool:
    return int(y).bit_count() == 1


def _shifted_right(x, power):
    """A quotient by a power of two."""
    return lax.shift_right_logical(x, lax.population_count(power - 1))


def _masked(x, power):
    """A remainder by a power of two."""
    return lax.bitwise_and(x, power - 1)


def _by_number(
    example: Callable[..., Any],
    replacement: Callable[..., Any],
    args: tuple[jax.ShapeDtypeStruct, ...],
    when: Callable[..., bool],
    when_literals: Callable[..., bool] = _is_number,
) -> Pattern:
    """A quotient or remainder by a number that is known."""
    return Pattern(
        example, replacement, args=args, when=when, literals=(1,), when_literals=when_literals
    )


UNSIGNED_PATTERNS = (
    _by_number(
        lax.div, _shifted_right, (_UNSIGNED, _UNSIGNED_NUMBER), _is_unsigned, _is_power_of_two
    ),
    _by_number(lax.rem, _masked, (_UNSIGNED, _UNSIGNED_NUMBER), _is_unsigned, _is_power_of_two),
    _by_number(
        jnp.remainder, _masked, (_UNSIGNED, _UNSIGNED_NUMBER), _is_unsigned, _is_power_of_two
    ),
    _by_number(jnp.remainder, lax.rem, (_UNSIGNED, _UNSIGNED_NUMBER), _is_unsigned),
)

PATTERNS = (
    _by_number(
        jnp.floor_divide, _FLOOR_DIVIDE.bind, (_INTEGERS, _INTEGER), _is_signed, _is_divisor
    ),
    _by_number(jnp.remainder, _FLOOR_MOD.bind, (_INTEGERS, _INTEGER), _is_signed, _is_divisor),
    *UNSIGNED_PATTERNS,
    _by_number(jnp.remainder, _FLOOR_MOD.bind, (_FLOATS, _NUMBER), is_float),
)
