"""Arguments of harnesses: groups of dtypes, and functions that make arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from lowering.ops.dtypes import BOOL, COMPLEX, FLOAT, INTEGER

# A function that makes an array from a random generator.
Maker = Callable[[np.random.Generator], np.ndarray]

INEXACT = FLOAT + COMPLEX
NUMBER = INTEGER + INEXACT
ALL = BOOL + NUMBER


def name(dtype: Any) -> str:
    """The name of a dtype, for the case of a harness."""
    return np.dtype(dtype).name


def is_float(dtype: Any) -> bool:
    """Whether a dtype is a real floating-point type (bfloat16 included)."""
    return np.dtype(dtype) in [np.dtype(d) for d in FLOAT]


def is_complex(dtype: Any) -> bool:
    """Whether a dtype is complex."""
    return np.dtype(dtype).kind == "c"


def random(shape: Sequence[int], dtype: Any, low: float = -4, high: float = 4) -> Maker:
    """Uniform values in [low, high), clipped to the range of `dtype`; random bits for bool."""

    def make(rng: np.random.Generator) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return rng.integers(0, 2, shape).astype(kind)
        if kind.kind in "iu":
            info = np.iinfo(kind)
            lowest, highest = max(int(np.floor(low)), info.min), min(int(high), info.max)
            return rng.integers(lowest, highest, shape, np.int64, endpoint=True).astype(kind)
        x = rng.uniform(low, high, shape)
        if kind.kind == "c":
            x = x + 1j * rng.uniform(low, high, shape)
        return np.asarray(x).astype(kind)

    return make


def whole(shape: Sequence[int], dtype: Any) -> Maker:
    """Whole numbers from -2 to 2: many of them are equal, and sums are exact in any order."""
    return lambda rng: rng.integers(-2, 3, shape).astype(dtype)


def full_range(shape: Sequence[int], dtype: Any) -> Maker:
    """Random bit patterns of an integer dtype."""

    def make(rng: np.random.Generator) -> np.ndarray:
        itemsize = np.dtype(dtype).itemsize
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(rng.bytes(count * itemsize), dtype).reshape(shape).copy()

    return make


def specials(dtype: Any) -> np.ndarray:
    """The values of a dtype on which implementations differ, as a vector.

    Zeros of both signs, ones, limits, subnormals, infinities and NaN.
    """
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        integers = {0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.bits}
        if info.min < 0:
            integers |= {-1, -2, -7, -info.bits}
        return np.array(sorted(integers), kind)
    if kind.kind == "c":
        parts = specials(np.float32 if kind == np.complex64 else np.float64)
        real, imag = np.meshgrid(parts, parts)
        numbers = np.empty(real.size, kind)
        numbers.real, numbers.imag = real.ravel(), imag.ravel()
        return numbers
    finfo = ml_dtypes.finfo(kind)
    values = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -7.25, 40.0, -40.0]
    limits = [finfo.max, finfo.min, finfo.tiny, -finfo.tiny, finfo.smallest_subnormal, finfo.eps]
    return np.array([*values, *map(float, limits), np.inf, -np.inf, np.nan]).astype(kind)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values of a dtype, as two vectors."""
    x, y = np.meshgrid(specials(dtype), specials(dtype))
    return x.ravel(), y.ravel()
