"""Conversions of words in halves, which may be known; see `arrays.half_arithmetic`."""

from typing import Any

import numpy as np

from lowering.arrays import float_bits
from lowering.arrays.exact import (
    floor,
    is_known,
    minus,
    plus,
    quotient,
    remainder,
    times,
    to_integers,
    where,
)
from lowering.arrays.half_arithmetic import selected
from lowering.arrays.halves import SIZE, Halves

_ALL = SIZE - 1


def of_float32(x: Any) -> Halves:
    """Floats rounded to zero: 0 for NaN and what is negative, the last word for what is too large.

    In float32 the halves are exact.
    """
    is_large = x >= np.float32(SIZE) ** 2
    is_inside = (x > np.float32(0)) & ~is_large
    number = floor(where(is_inside, x, np.float32(0)))
    high = floor(number * np.float32(1 / SIZE))
    low = number - high * np.float32(SIZE)
    return selected(is_large, (np.int32(_ALL),) * 2, (to_integers(high), to_integers(low)))


def of_int32(x: Any) -> Halves:
    """The halves of the bits of int32, which are exact for integers of up to 24 bits."""
    low = remainder(x, SIZE)
    # WebAssembly divides in float32, which is exact for multiples of 2^16.
    return remainder(quotient(minus(x, low), SIZE), SIZE), low


def to_int32(x: Halves) -> Any:
    """The int32 of the same bits; it is exact if it has 24 bits."""
    half = SIZE // 2
    high = minus(remainder(plus(x[0], half), SIZE), half)
    return plus(times(high, SIZE), x[1])


def to_float_bits(x: Halves) -> Any:
    """The float32 with the bits of words."""
    high, low = x
    if is_known(high) and is_known(low):
        return ((high.astype(np.uint32) << 16) | low.astype(np.uint32)).view(np.float32)
    exponent = quotient(remainder(high, SIZE // 2), 1 << 7)
    mantissa = plus(times(remainder(high, 1 << 7), SIZE), low)
    return float_bits.of_fields(high >= SIZE // 2, exponent, mantissa)


def of_float_bits(x: Any) -> Halves:
    """The inverse of `to_float_bits`."""
    if is_known(x):
        bits = x.view(np.uint32)
        return (bits >> 16).astype(np.int32), (bits & _ALL).astype(np.int32)
    negative, exponent, mantissa = float_bits.fields(x)
    sign = times(negative.astype(np.int32), SIZE // 2)
    high = plus(times(exponent, 1 << 7), quotient(mantissa, SIZE))
    return plus(high, sign), remainder(mantissa, SIZE)
