"""Arithmetic of words in halves, in which no integer exceeds 24 bits.

Words are pairs of their upper and their lower 16 bits; see `arrays.halves`. Halves that are known
when a function is traced are arrays of NumPy, and need no ops: most shifts and masks of programs
are known.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals
from lowering.arrays import float_bits
from lowering.arrays import halves as ops
from lowering.arrays.halves import SIZE, Halves

_ALL = SIZE - 1
_BYTE = 256

ZERO = np.zeros((), np.int32)

# Of more words sums of bytes would exceed 24 bits.
MOST_SUMMED = 1 << 16


def known(word: int) -> Halves:
    """A known word."""
    return np.asarray(word >> 16, np.int32), np.asarray(word & _ALL, np.int32)


def add(*terms: Halves) -> Halves:
    """The sum of at most 256 words, modulo 2^32."""
    highs, lows = (
        [half for half in halves if not _is(half, 0)] for halves in zip(*terms, strict=True)
    )
    low, high = (functools.reduce(_sum, halves, ZERO) for halves in (lows, highs))
    if len(lows) > 1:
        low, high = _remainder(low, SIZE), _sum(high, _quotient(low, SIZE))
    if len(lows) > 1 or len(highs) > 1:
        high = _remainder(high, SIZE)
    return high, low


def subtract(x: Halves, y: Halves) -> Halves:
    """The difference, modulo 2^32."""
    (x_high, x_low), (y_high, y_low) = x, y
    low, high = _difference(x_low, y_low), _difference(x_high, y_high)
    if not _is(y_low, 0):
        high = _sum(high, _quotient(low, SIZE))
    if not (_is(y_low, 0) and _is(y_high, 0)):
        high, low = _remainder(high, SIZE), _remainder(low, SIZE)
    return high, low


def invert(x: Halves) -> Halves:
    """The complement of each bit."""
    high, low = x
    return _difference(_known(_ALL), high), _difference(_known(_ALL), low)


def multiply(x: Halves, y: Halves) -> Halves:
    """The product, modulo 2^32, by products of a half and a byte."""
    if all(map(is_known, x)):
        x, y = y, x
    factor = _number(y)
    if factor is not None and factor.bit_count() == 1:
        return _by_known_left(x, factor.bit_length() - 1)
    (x_high, x_low), (y_high, y_low) = x, y
    y0, y1 = _remainder(y_low, _BYTE), _quotient(y_low, _BYTE)
    y2, y3 = _remainder(y_high, _BYTE), _quotient(y_high, _BYTE)
    first, second = _product(x_low, y0), _product(x_low, y1)
    low = _sum(_remainder(first, SIZE), _shifted(_remainder(second, _BYTE)))
    high = _sum(
        _sum(_quotient(first, SIZE), _quotient(second, _BYTE)),
        _sum(_remainder(_product(x_low, y2), SIZE), _remainder(_product(x_high, y0), SIZE)),
    )
    # Of the highest products no more than a byte counts.
    top = _sum(
        _product(_remainder(x_low, _BYTE), y3) if not _is(y3, 0) else ZERO,
        _product(_remainder(x_high, _BYTE), y1) if not _is(y1, 0) else ZERO,
    )
    high = _sum(high, _shifted(_remainder(top, _BYTE)))
    return _remainder(_sum(high, _quotient(low, SIZE)), SIZE), _remainder(low, SIZE)


def _number(x: Halves) -> int | None:
    """The word that all elements are known to be, if there is one."""
    if not all(map(is_known, x)):
        return None
    high, low = map(np.asarray, x)
    numbers = np.unique(high.astype(np.int64) * SIZE + low)
    return int(numbers[0]) if numbers.size == 1 else None


def _shifted(byte):
    return _product(byte, _known(_BYTE))


def bitwise(op: str, x: Halves, y: Halves) -> Halves:
    """The bitwise "and", "or" or "xor"."""
    found = [_known_bits(op, *halves) for halves in zip(x, y, strict=True)]
    (high, low), (x_high, x_low), (y_high, y_low) = found, x, y
    if high is not None and low is not None:
        return high, low
    if high is None and low is None:
        return tuple(ops.BITWISE.bind(*x, *y, op=op))
    return (
        ops.BITWISE.bind(x_high, y_high, op=op)[0] if high is None else high,
        ops.BITWISE.bind(x_low, y_low, op=op)[0] if low is None else low,
    )


def _known_bits(op, x, y):
    """A bitwise operation on halves that needs no table, as one of them is known; else None."""
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
    below = _remainder(x, end) if end < SIZE else x
    common = _difference(below, _remainder(x, first)) if mask else ZERO
    if op == "and":
        return common
    return _without(op, x, y, common)


def _without(op, x, y, common):
    """`x | y` or `x ^ y`, given `x & y`."""
    times = 1 if op == "or" else 2
    return _difference(_sum(x, y), _product(common, _known(times)))


def shift(x: Halves, amount: Halves, is_left: bool) -> Halves:
    """A shift to the left, or a logical one to the right; 0 for amounts of 32 or more."""
    by_known = _by_known_left if is_left else _by_known_right
    amount_high, amount_low = amount
    distance = _number(amount)
    if distance is not None:
        return by_known(x, distance) if distance < 32 else (ZERO, ZERO)
    # In two steps: by 16 or not, and by up to 15.
    is_inside = (amount_high == ZERO) & (amount_low < _known(32))
    is_far = amount_low >= _known(16)
    x = _selected(is_far, by_known(x, 16), x)
    near = _remainder(amount_low, 16)
    factor, rest = _looked_up(_POWERS, near), _looked_up(_POWERS[::-1] * 2, near)
    moved = _left(x, factor, rest) if is_left else _right(x, factor, rest)
    return _selected(is_inside, moved, (ZERO, ZERO))


_POWERS = (1 << np.arange(16)).astype(np.int32)


def _by_known_left(x, distance):
    high, low = x
    if distance >= 16:
        kept = _remainder(low, 1 << (32 - distance))
        return _product(kept, _known(1 << (distance - 16))), ZERO
    return (high, low) if distance == 0 else _left(x, 1 << distance, 1 << (16 - distance))


def _by_known_right(x, distance):
    high, low = x
    if distance >= 16:
        return ZERO, _quotient(high, 1 << (distance - 16))
    return (high, low) if distance == 0 else _right(x, 1 << distance, 1 << (16 - distance))


def _left(x, factor, rest):
    """A shift that multiplies by `factor`, a power of two; `rest` is the size of a half by it."""
    high, low = x
    high = _sum(_product(_remainder(high, rest), _known(factor)), _quotient(low, rest))
    return high, _product(_remainder(low, rest), _known(factor))


def _right(x, factor, rest):
    high, low = x
    low = _sum(_quotient(low, factor), _product(_remainder(high, factor), _known(rest)))
    return _quotient(high, factor), low


def rotate_left(x: Halves, distance: int) -> Halves:
    """A rotation by 1 to 31 bits."""
    high, low = x if distance < 16 else x[::-1]
    if distance % 16 == 0:
        return high, low
    factor, rest = 1 << distance % 16, 1 << (16 - distance % 16)
    turned = []
    for half, other in ((high, low), (low, high)):
        kept = _product(_remainder(half, rest), _known(factor))
        turned.append(_sum(kept, _quotient(other, rest)))
    return turned[0], turned[1]


def equal(x: Halves, y: Halves) -> Any:
    """Whether words are equal."""
    return (x[0] == y[0]) & (x[1] == y[1])


def is_not_zero(x: Halves) -> Any:
    """Whether words are not zero."""
    return _sum(*x).astype(np.bool_)


def less(x: Halves, y: Halves, or_equal: bool = False) -> Any:
    """Whether words are less than others, or equal to them."""
    below = x[1] <= y[1] if or_equal else x[1] < y[1]
    return x[0] < _sum(y[0], below.astype(np.int32))


def sum_by(fun: Callable[[jax.Array], jax.Array], x: Halves, count: Any) -> Halves:
    """Sums of words, by a function that makes sums of at most `count` integers.

    Args:
      fun: takes and returns an array of int32.
      x: the words.
      count: how many are summed; at most `MOST_SUMMED`.
    """
    high, low = x
    if avals.is_at_most(count, _BYTE):
        first, second = fun(low), fun(high)
        return add(_word(first), (_remainder(second, SIZE), ZERO))
    lowest, second, third, highest = (
        fun(byte)
        for half in (low, high)
        for byte in (_remainder(half, _BYTE), _quotient(half, _BYTE))
    )
    return add(
        _word(lowest),
        (_quotient(second, _BYTE), _shifted(_remainder(second, _BYTE))),
        (_remainder(third, SIZE), ZERO),
        (_shifted(_remainder(highest, _BYTE)), ZERO),
    )


def _word(number):
    """An integer of 24 bits as a word."""
    return _quotient(number, SIZE), _remainder(number, SIZE)


def to_float32(x: Halves) -> Any:
    """The nearest float32."""
    high, low = (half.astype(np.float32) for half in x)
    return high * np.float32(SIZE) + low


def of_float32(x: Any) -> Halves:
    """Floats rounded to zero: 0 for NaN and what is negative, the last word for what is too large.

    In float32 the halves are exact.
    """
    is_large = x >= np.float32(SIZE) ** 2
    is_inside = (x > np.float32(0)) & ~is_large
    number = _floor(_where(is_inside, x, np.float32(0)))
    high = _floor(number * np.float32(1 / SIZE))
    low = number - high * np.float32(SIZE)
    return _selected(is_large, (_known(_ALL),) * 2, (_integers(high), _integers(low)))


def of_int32(x: Any) -> Halves:
    """The halves of the bits of int32, which are exact as far as the integers are."""
    return _remainder(_quotient(x, SIZE), SIZE), _remainder(x, SIZE)


def to_int32(x: Halves) -> Any:
    """The int32 of the same bits; it is exact if it has 24 bits."""
    half = _known(SIZE // 2)
    high = _difference(_remainder(_sum(x[0], half), SIZE), half)
    return _sum(_product(high, _known(SIZE)), x[1])


def to_places(x: Halves) -> Any:
    """Words as indices in int32: those that it does not hold are behind every array."""
    return _where(x[0] >= _known(SIZE // 2), np.int32(np.iinfo(np.int32).max), to_int32(x))


def to_float_bits(x: Halves) -> Any:
    """The float32 with the bits of words."""
    high, low = x
    if is_known(high) and is_known(low):
        return ((high.astype(np.uint32) << 16) | low.astype(np.uint32)).view(np.float32)
    exponent = _quotient(_remainder(high, SIZE // 2), 1 << 7)
    mantissa = _sum(_product(_remainder(high, 1 << 7), _known(SIZE)), low)
    return float_bits.of_fields(high >= _known(SIZE // 2), exponent, mantissa)


def of_float_bits(x: Any) -> Halves:
    """The inverse of `to_float_bits`."""
    if is_known(x):
        bits = x.view(np.uint32)
        return (bits >> 16).astype(np.int32), (bits & _ALL).astype(np.int32)
    negative, exponent, mantissa = float_bits.fields(x)
    sign = _product(negative.astype(np.int32), _known(SIZE // 2))
    high = _sum(_product(exponent, _known(1 << 7)), _quotient(mantissa, SIZE))
    return _sum(high, sign), _remainder(mantissa, SIZE)


def _selected(which, x, y):
    first, second = (_where(which, a, b) for a, b in zip(x, y, strict=True))
    return first, second


def _where(which, x, y):
    where = np.where if all(map(is_known, (which, x, y))) else jnp.where
    return where(which, x, y)


def _floor(x):
    return np.floor(x) if is_known(x) else lax.floor(x)


def _integers(x):
    return x.astype(np.int32) if is_known(x) else ops.TO_INTEGERS.bind(x)[0]


def _looked_up(table, index):
    if is_known(index):
        return table[index]
    return ops.LOOK_UP.bind(index, table=tuple(table.tolist()))[0]


def is_known(x: Any) -> bool:
    """Whether an array is known when a function is traced."""
    return isinstance(x, np.ndarray | np.generic)


def _known(number):
    return np.asarray(number, np.int32) if isinstance(number, int) else number


def _is(x: Any, number: int) -> bool:
    return is_known(x) and bool(np.all(x == number))


def _sum(x, y):
    if is_known(x) and is_known(y):
        return x + y
    if _is(x, 0):
        return y
    return x if _is(y, 0) else x + y


def _difference(x, y):
    if is_known(x) and is_known(y):
        return x - y
    if _is(x, 0):
        # TensorFlow's optimizer would make a negation, which is not exact for integers on webgl.
        return _product(y, _known(-1))
    return x if _is(y, 0) else x - y


def _product(x, y):
    if is_known(x) and is_known(y):
        return x * y
    if _is(x, 0) or _is(y, 0):
        return ZERO
    if _is(x, 1):
        return y
    return x if _is(y, 1) else ops.PRODUCT.bind(x, y)[0]


def _quotient(x, y):
    """Rounded down, by an op that is exact for integers of 24 bits on all backends."""
    y = _known(y)
    if is_known(x) and is_known(y):
        return x // y
    return x if _is(y, 1) else ops.QUOTIENT.bind(x, y)[0]


def _remainder(x, y):
    y = _known(y)
    if is_known(x) and is_known(y):
        return x % y
    return ZERO if _is(y, 1) else ops.REMAINDER.bind(x, y)[0]
