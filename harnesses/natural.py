"""Harnesses for natural targets: no argument is NaN, and signs of zeros are not compared.

Subnormal numbers are zeros, too: XLA flushes them on the CPU, and so do some of the runtimes.
"""

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

from harnesses import compare
from harnesses.harness import Harness
from lowering.avals import HALF_FLOATS
from lowering.export.differences import overflow_alike


class _Natural(Harness):
    """A harness whose arguments have a number in place of each NaN, and no subnormals."""

    def make_args(self, sample: int = 0) -> list[Any]:
        return list(map(_usual, super().make_args(sample)))


def natural(harness: Harness, promotes: bool = False) -> Harness:
    """The harness with arguments without NaN and subnormals.

    The results may have anything where JAX has NaN, and zeros of either sign or subnormals for
    each other. If floats of 16 bits are promoted to float32, their infinities and the largest of
    them are the same.
    """
    fields = {field.name: getattr(harness, field.name) for field in dataclasses.fields(harness)}
    promoted = harness.promoted if promotes else None
    comparer = _compared(promoted or harness.natural or harness.comparer, promotes)
    derivatives = harness.derivatives and _compared(harness.derivatives, promotes)
    return _Natural(**{**fields, "comparer": comparer, "derivatives": derivatives})


def _usual(x: Any) -> Any:
    if not isinstance(x, np.ndarray | np.generic) or not _may_be_nan(x.dtype):
        return x
    return _flushed(np.where(np.isnan(x), np.ones((), x.dtype), x).astype(x.dtype))


def _flushed(x: np.ndarray) -> np.ndarray:
    """An array with zeros, without a sign, in place of subnormals."""
    if x.dtype.kind == "c":
        parts = _flushed(np.stack([x.real, x.imag], -1))
        return np.ascontiguousarray(parts).view(x.dtype)[..., 0]
    # Arithmetic of float16 is that of float32, where its subnormals are not.
    tiny = 0 if x.dtype == np.float16 else ml_dtypes.finfo(x.dtype).smallest_normal
    is_zero = (abs(x) < tiny) | (x == 0)
    return np.where(is_zero, np.zeros((), x.dtype), x).astype(x.dtype)


def _may_be_nan(dtype: np.dtype) -> bool:
    if dtype.kind in "fc":
        return True
    return dtype.kind == "V" and dtype.name in dir(ml_dtypes) and "float" in dtype.name


def _compared(comparer: compare.Comparer, promotes: bool) -> compare.Comparer:
    """A comparer that ignores elements that are NaN in JAX, signs of zeros, and subnormals."""

    def compare_natural(expected, actual, args):
        return comparer(
            [_plain(e, e, promotes) for e in expected],
            [_plain(a, e, promotes) for e, a in zip(expected, actual, strict=True)],
            args,
        )

    return compare_natural


def _plain(x: np.ndarray, expected: np.ndarray, promotes: bool) -> np.ndarray:
    """`x` with 0 for all that counts as zero, and with NaN where the expected array has it."""
    if not _may_be_nan(x.dtype):
        return x
    x = _flushed(x)
    if x.dtype.kind == "c":
        # Adding a positive zero to a part makes it positive, and changes nothing else.
        x = x + x.dtype.type(0)
    else:
        x = np.where(x == 0, np.zeros((), x.dtype), x).astype(x.dtype)
    is_open = np.isnan(expected)
    if promotes and x.dtype in HALF_FLOATS:
        is_open |= overflow_alike(expected, x, x.dtype)
    return np.where(is_open, expected, x).astype(x.dtype)
