"""The formats of numbers of eight bits or fewer (float8, float4, int4, int2), and of short
integers."""

import dataclasses
import functools
from typing import Any

import ml_dtypes
import numpy as np

FLOAT = tuple(
    map(
        np.dtype,
        (
            ml_dtypes.float8_e3m4,
            ml_dtypes.float8_e4m3,
            ml_dtypes.float8_e4m3b11fnuz,
            ml_dtypes.float8_e4m3fn,
            ml_dtypes.float8_e4m3fnuz,
            ml_dtypes.float8_e5m2,
            ml_dtypes.float8_e5m2fnuz,
            ml_dtypes.float8_e8m0fnu,
            ml_dtypes.float4_e2m1fn,
        ),
    )
)
SIGNED = (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4))
UNSIGNED = (np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4))
INTEGER = SIGNED + UNSIGNED
NARROW = FLOAT + INTEGER

# Integers that TensorFlow computes with, but some runtimes do not.
SHORT = tuple(map(np.dtype, (np.int8, np.int16, np.uint8, np.uint16)))

FLOAT4 = np.dtype(ml_dtypes.float4_e2m1fn)
# Powers of two, without a sign and without zero.
E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)

# The dtypes that TensorFlow casts to and from float32 in every mode, rounding as JAX does.
HAS_CAST = frozenset(map(np.dtype, (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)))


_RANGE_OF_BOOL = (0, 1)


@dataclasses.dataclass(frozen=True)
class Format:
    """A floating-point format.

    Attributes:
      bits: how many bits a number has.
      mantissa: how many of them are its mantissa.
      bias: of the exponent.
      tiny: the least number that is not subnormal.
      largest: the greatest finite number.
      overflow: what greater numbers become.
      has_sign: whether there are negative numbers.
      has_negative_zero: whether a zero has a sign.
      infinity: the bits of infinity, if there is one.
      nan: the bits of NaN, if there is one.
    """

    bits: int
    mantissa: int
    bias: int
    tiny: float
    largest: float
    overflow: float
    has_sign: bool
    has_negative_zero: bool
    infinity: int
    nan: int | None


@functools.cache
def format_of(dtype: np.dtype) -> Format:
    """The format of a floating-point dtype of eight bits or fewer."""
    info = ml_dtypes.finfo(dtype)
    infinity, nan, zero = np.array([np.inf, np.nan, -0.0], np.float32).astype(dtype)
    return Format(
        bits=info.bits,
        mantissa=info.nmant,
        bias=1 - info.minexp if info.nmant else -info.minexp,
        tiny=float(info.smallest_normal),
        largest=float(info.max),
        overflow=float(infinity),
        has_sign=bool(info.min < 0),
        has_negative_zero=bool(zero == 0 and np.signbit(zero)),
        infinity=int(infinity.view(np.uint8)),
        nan=int(nan.view(np.uint8)) if np.isnan(nan) else None,
    )


def limits(dtype: Any) -> tuple[int, int] | None:
    """The least and the greatest number of a dtype of integers; None for others."""
    if dtype not in INTEGER and np.dtype(dtype).kind not in "iu":
        return None
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def has_all_of(dtype: Any, other: Any) -> bool:
    """Whether a dtype represents all numbers of another one exactly, as far as both are known."""
    own, others = (_RANGE_OF_BOOL if x == np.bool_ else limits(x) for x in (dtype, other))
    if own is not None and others is not None:
        return own[0] <= others[0] and others[1] <= own[1]
    if not all(isinstance(x, np.dtype) and x.isbuiltin == 1 for x in (dtype, other)):
        return False
    # NumPy calls it safe to make floats of 64-bit integers, most of which they only approximate.
    is_rounded = others is not None and other.itemsize == 8
    return np.can_cast(other, dtype, "safe") and not is_rounded


def width(dtype: Any) -> int:
    """How many bits a number of a dtype has."""
    if dtype in FLOAT:
        return ml_dtypes.finfo(dtype).bits
    return ml_dtypes.iinfo(dtype).bits if dtype in INTEGER else 8 * np.dtype(dtype).itemsize


def has_negative_nan(dtype: Any) -> bool:
    """Whether NaN has the bits that are a negative zero in other formats."""
    return dtype in FLOAT and format_of(dtype).nan == 0x80


def infinity_is_nan(dtype: Any) -> bool:
    """Whether infinity becomes NaN in a dtype."""
    return dtype in FLOAT and bool(np.isnan(format_of(dtype).overflow))


def has_infinity(dtype: Any) -> bool:
    """Whether a dtype of eight bits or fewer has infinities."""
    return dtype in FLOAT and bool(np.isinf(format_of(dtype).overflow))
