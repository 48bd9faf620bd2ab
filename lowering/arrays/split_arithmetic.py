"""Arithmetic of uint32 split into 16-bit parts, in which no integer exceeds 24 bits.

Parts are explained in `arrays.uint32_parts`. Parts that are known when a function is traced are
NumPy arrays, and need no ops: most shifts and masks of programs are known.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from lowering import avals
from lowering.arrays.exact import (
    BITWISE,
    ZERO,
    is_all,
    is_known,
    looked_up,
    minus,
    plus,
    quotient,
    remainder,
    times,
    where,
)
from lowering.arrays.uint32_parts import BASE, Parts

_ALL = BASE - 1
_BYTE = 256

# Sums of more bytes could exceed 24 bits.
MOST_SUMMED = 1 << 16


def known(number: int) -> Parts:
    """The parts of a known integer."""
    return np.asarray(number >> 16, np.int32), np.asarray(number & _ALL, np.int32)


def add(*terms: Parts) -> Parts:
    """The sum of at most 256 numbers, modulo 2^32."""
    highs, lows = (
        [part for part in parts if not is_all(part, 0)] for parts in zip(*terms, strict=True)
    )
    low, high = (functools.reduce(plus, parts, ZERO) for parts in (lows, highs))
    if len(lows) > 1:
        low, high = remainder(low, BASE), plus(high, quotient(low, BASE))
    if len(lows) > 1 or len(highs) > 1:
        high = remainder(high, BASE)
    return high, low


def subtract(x: Parts, y: Parts) -> Parts:
    """The difference, modulo 2^32."""
    (x_high, x_low), (y_high, y_low) = x, y
    low, high = minus(x_low, y_low), minus(x_high, y_high)
    if not is_all(y_low, 0):
        high = plus(high, quotient(low, BASE))
    if not (is_all(y_low, 0) and is_all(y_high, 0)):
        high, low = remainder(high, BASE), remainder(low, BASE)
    return high, low


def invert(x: Parts) -> Parts:
    """The complement of each bit."""
    high, low = x
    return minus(_ALL, high), minus(_ALL, low)


def multiply(x: Parts, y: Parts) -> Parts:
    """The product, modulo 2^32, by products of 16 bits and 8 bits."""
    if is_known(*x):
        x, y = y, x
    factor = _number(y)
    if factor is not None and factor.bit_count() == 1:
        return _by_known_left(x, factor.bit_length() - 1)
    (x_high, x_low), (y_high, y_low) = x, y
    y0, y1 = remainder(y_low, _BYTE), quotient(y_low, _BYTE)
    y2, y3 = remainder(y_high, _BYTE), quotient(y_high, _BYTE)
    first, second = times(x_low, y0), times(x_low, y1)
    low = plus(remainder(first, BASE), _shifted(remainder(second, _BYTE)))
    high = plus(
        plus(quotient(first, BASE), quotient(second, _BYTE)),
        plus(remainder(times(x_low, y2), BASE), remainder(times(x_high, y0), BASE)),
    )
    # Only the lowest byte of the highest products counts.
    top = plus(
        times(remainder(x_low, _BYTE), y3) if not is_all(y3, 0) else ZERO,
        times(remainder(x_high, _BYTE), y1) if not is_all(y1, 0) else ZERO,
    )
    high = plus(high, _shifted(remainder(top, _BYTE)))
    return remainder(plus(high, quotient(low, BASE)), BASE), remainder(low, BASE)


def _number(x: Parts) -> int | None:
    """The integer that all elements are known to be; None if there is none."""
    if not is_known(*x):
        return None
    high, low = map(np.asarray, x)
    numbers = np.unique(high.astype(np.int64) * BASE + low)
    return int(numbers[0]) if numbers.size == 1 else None


def _shifted(byte):
    return times(byte, _BYTE)


def bitwise(op: str, x: Parts, y: Parts) -> Parts:
    """The bitwise "and", "or" or "xor"."""
    found = [_known_bits(op, *parts) for parts in zip(x, y, strict=True)]
    (high, low), (x_high, x_low), (y_high, y_low) = found, x, y
    if high is not None and low is not None:
        return high, low
    if high is None and low is None:
        return tuple(BITWISE.bind(*x, *y, op=op))
    return (
        BITWISE.bind(x_high, y_high, op=op)[0] if high is None else high,
        BITWISE.bind(x_low, y_low, op=op)[0] if low is None else low,
    )


def _known_bits(op, x, y):
    """A bitwise operation on 16 bits by a known mask that needs no table; None if it needs one."""
    if is_known(x):
        x, y = y, x
    if not is_known(y):
        return None
    if is_known(x):
        return {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op](x, y)
    mask = int(np.ravel(y)[0]) if y.size else 0
    if not np.all(y == mask):
        return None
    # The bits from `first` on, up to `end`.
    first = mask & -mask
    end = mask + first
    if mask and end & (end - 1):
        return None
    below = remainder(x, end) if end < BASE else x
    common = minus(below, remainder(x, first)) if mask else ZERO
    if op == "and":
        return common
    return _without(op, x, y, common)


def _without(op, x, y, common):
    """`x | y` or `x ^ y`, given `x & y`."""
    return minus(plus(x, y), times(common, 1 if op == "or" else 2))


def shift(x: Parts, amount: Parts, is_left: bool) -> Parts:
    """A shift to the left, or a logical one to the right; 0 for amounts of 32 or more."""
    by_known = _by_known_left if is_left else _by_known_right
    amount_high, amount_low = amount
    distance = _number(amount)
    if distance is not None:
        return by_known(x, distance) if distance < 32 else (ZERO, ZERO)
    # In two steps: by 16 or not, and by up to 15.
    is_inside = (amount_high == ZERO) & (amount_low < 32)
    is_far = amount_low >= 16
    x = selected(is_far, by_known(x, 16), x)
    near = remainder(amount_low, 16)
    factor, rest = looked_up(_POWERS, near), looked_up(_POWERS[::-1] * 2, near)
    moved = _left(x, factor, rest) if is_left else _right(x, factor, rest)
    return selected(is_inside, moved, (ZERO, ZERO))


_POWERS = (1 << np.arange(16)).astype(np.int32)


def _by_known_left(x, distance):
    high, low = x
    if distance >= 16:
        kept = remainder(low, 1 << (32 - distance))
        return times(kept, 1 << (distance - 16)), ZERO
    return (high, low) if distance == 0 else _left(x, 1 << distance, 1 << (16 - distance))


def _by_known_right(x, distance):
    high, low = x
    if distance >= 16:
        return ZERO, quotient(high, 1 << (distance - 16))
    return (high, low) if distance == 0 else _right(x, 1 << distance, 1 << (16 - distance))


def _left(x, factor, rest):
    """A shift that multiplies by `factor`, a power of two; `rest` is 2^16 / `factor`."""
    high, low = x
    high = plus(times(remainder(high, rest), factor), quotient(low, rest))
    return high, times(remainder(low, rest), factor)


def _right(x, factor, rest):
    high, low = x
    low = plus(quotient(low, factor), times(remainder(high, factor), rest))
    return quotient(high, factor), low


def rotate_left(x: Parts, distance: int) -> Parts:
    """A rotation by 1 to 31 bits."""
    high, low = x if distance < 16 else x[::-1]
    if distance % 16 == 0:
        return high, low
    factor, rest = 1 << distance % 16, 1 << (16 - distance % 16)
    turned = []
    for part, other in ((high, low), (low, high)):
        kept = times(remainder(part, rest), factor)
        turned.append(plus(kept, quotient(other, rest)))
    return turned[0], turned[1]


def equal(x: Parts, y: Parts) -> Any:
    """x == y."""
    return (x[0] == y[0]) & (x[1] == y[1])


def less(x: Parts, y: Parts, or_equal: bool = False) -> Any:
    """x < y, or x <= y."""
    below = x[1] <= y[1] if or_equal else x[1] < y[1]
    return x[0] < plus(y[0], below.astype(np.int32))


def sum_by(fun: Callable[[jax.Array], jax.Array], x: Parts, count: Any) -> Parts:
    """Sums of uint32, by a function that sums int32.

    Args:
      fun: takes and returns an array of int32; it sums at most `count` of them.
      x: the parts.
      count: how many numbers are summed; at most `MOST_SUMMED`.
    """
    high, low = x
    if avals.is_at_most(count, _BYTE):
        first, second = fun(low), fun(high)
        return add(_parts(first), (remainder(second, BASE), ZERO))
    lowest, second, third, highest = (
        fun(byte)
        for part in (low, high)
        for byte in (remainder(part, _BYTE), quotient(part, _BYTE))
    )
    return add(
        _parts(lowest),
        (quotient(second, _BYTE), _shifted(remainder(second, _BYTE))),
        (remainder(third, BASE), ZERO),
        (_shifted(remainder(highest, _BYTE)), ZERO),
    )


def _parts(number):
    """The parts of an integer of 24 bits."""
    return quotient(number, BASE), remainder(number, BASE)


def selected(which: Any, x: Parts, y: Parts) -> Parts:
    """The parts of `x` where `which` is true, and of `y` elsewhere."""
    first, second = (where(which, a, b) for a, b in zip(x, y, strict=True))
    return first, second
