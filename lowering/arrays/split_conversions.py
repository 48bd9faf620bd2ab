"""Conversions from and to uint32 split into 16-bit parts; see `arrays.split_arithmetic`."""

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
from lowering.arrays.split_arithmetic import selected
from lowering.arrays.uint32_parts import BASE, Parts

_ALL = BASE - 1


def of_float32(x: Any) -> Parts:
    """Floats rounded to zero: NaN and negative numbers give 0, too large ones the largest uint32.

    The arithmetic in float32 is exact.
    """
    is_large = x >= np.float32(BASE) ** 2
    is_inside = (x > np.float32(0)) & ~is_large
    number = floor(where(is_inside, x, np.float32(0)))
    high = floor(number * np.float32(1 / BASE))
    low = number - high * np.float32(BASE)
    return selected(is_large, (np.int32(_ALL),) * 2, (to_integers(high), to_integers(low)))


def of_int32(x: Any) -> Parts:
    """The parts of the bits of int32, exact for integers of up to 24 bits."""
    low = remainder(x, BASE)
    # WebAssembly divides in float32, which is exact for multiples of 2^16.
    return remainder(quotient(minus(x, low), BASE), BASE), low


def to_int32(x: Parts) -> Any:
    """The int32 with the same bits, exact if it has 24 bits."""
    half = BASE // 2
    high = minus(remainder(plus(x[0], half), BASE), half)
    return plus(times(high, BASE), x[1])


def to_float_bits(x: Parts) -> Any:
    """The float32 with the same bits."""
    high, low = x
    if is_known(high) and is_known(low):
        return ((high.astype(np.uint32) << 16) | low.astype(np.uint32)).view(np.float32)
    exponent = quotient(remainder(high, BASE // 2), 1 << 7)
    mantissa = plus(times(remainder(high, 1 << 7), BASE), low)
    return float_bits.of_fields(high >= BASE // 2, exponent, mantissa)


def of_float_bits(x: Any) -> Parts:
    """The inverse of `to_float_bits`."""
    if is_known(x):
        bits = x.view(np.uint32)
        return (bits >> 16).astype(np.int32), (bits & _ALL).astype(np.int32)
    negative, exponent, mantissa = float_bits.fields(x)
    sign = times(negative.astype(np.int32), BASE // 2)
    high = plus(times(exponent, 1 << 7), quotient(mantissa, BASE))
    return plus(high, sign), remainder(mantissa, BASE)
