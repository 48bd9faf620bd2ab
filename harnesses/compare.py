"""How the results of a cell are compared with JAX's.

A comparer is a function of JAX's results, the results of the cell and the arguments, all as flat
lists of arrays, and returns a `Comparison`. Shapes and dtypes have been compared before.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import SupportsIndex

import ml_dtypes
import numpy as np

from limitations import Looser


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The result of a comparer.

    Attributes:
      equal: whether the results count as the same.
      error: the worst error, in units of the tolerance; 0 if there is none.
      message: where the results differ most.
    """

    equal: bool
    error: float = 0.0
    message: str = ""


Arrays = Sequence[np.ndarray]
Comparer = Callable[[Arrays, Arrays, Arrays], Comparison]


def structure(expected: Arrays, actual: Arrays) -> Comparison:
    """Whether the results have the same number, shapes and dtypes."""
    if len(expected) != len(actual):
        return Comparison(False, np.inf, f"{len(actual)} results, not {len(expected)}")
    for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
        if e.shape != a.shape or e.dtype != a.dtype:
            shapes = f"{a.dtype}{list(a.shape)}, not {e.dtype}{list(e.shape)}"
            return Comparison(False, np.inf, f"result {i} is {shapes}")
    return Comparison(True)


def exact(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
    """Equal to the bit, signs of zeros included; all NaNs are equal."""
    for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
        same = (e == a) & (_signs(e) == _signs(a)) | (e != e) & (a != a)
        if not np.all(same):
            worst = tuple(np.argwhere(~np.asarray(same))[0])
            return Comparison(False, np.inf, _describe(i, worst, e, a))
    return Comparison(True)


def close(rtol: float | None = None, atol: float = 0.0, ulps: float = 8) -> Comparer:
    """Close, with equal infinities; all NaNs are equal, as are complex numbers with a NaN part.

    Args:
      rtol: relative tolerance; `ulps` times the epsilon of the dtype if None.
      atol: absolute tolerance.
      ulps: the default of `rtol`, in units of the dtype's epsilon.
    """

    def compare(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
        worst = Comparison(True)
        for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
            if e.dtype.kind in "biu":
                comparison = exact([e], [a], args)
                if not comparison.equal:
                    return comparison
                continue
            relative = ulps * float(ml_dtypes.finfo(e.dtype).eps) if rtol is None else rtol
            error = _errors(e, a, relative, atol)
            if error.size and error.max() > worst.error:
                at = np.unravel_index(np.argmax(error), error.shape)
                largest = float(error[at])
                worst = Comparison(largest <= 1, largest, _describe(i, at, e, a))
        return worst

    return compare


def nan_reaches(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
    """Where JAX's results are not finite, the others are not finite either.

    How far a NaN spreads beyond that depends on the order of operations.
    """
    for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
        wrong = ~np.isfinite(e) & np.isfinite(a)
        if np.any(wrong):
            at = [int(k) for k in np.argwhere(wrong)[0]]
            return Comparison(False, np.inf, f"result {i} is finite at {at}, JAX's is not")
    return Comparison(True)


# The comparers of results that a limitation covers.
LOOSER: Mapping[Looser, Comparer] = {Looser.NAN_REACHES: nan_reaches}


def _errors(e: np.ndarray, a: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """The error of each element, in units of the tolerance."""
    if e.dtype.kind == "c":
        finite = np.isfinite(e) & np.isfinite(a)
        parts = np.maximum(_errors(e.real, a.real, rtol, atol), _errors(e.imag, a.imag, rtol, atol))
        with np.errstate(all="ignore"):
            distance = np.abs(e.astype(np.complex128) - a.astype(np.complex128))
            scaled = _ratio(distance, atol + rtol * np.abs(e.astype(np.complex128)))
        error = np.where(finite, scaled, parts)
        return np.where(np.isnan(e) & np.isnan(a), 0.0, error)
    e, a = np.asarray(e, np.float64), np.asarray(a, np.float64)
    with np.errstate(all="ignore"):
        same = (e == a) | np.isnan(e) & np.isnan(a)
        comparable = np.isfinite(e) & np.isfinite(a)
        scaled = _ratio(np.abs(e - a), atol + rtol * np.abs(e))
    return np.where(same, 0.0, np.where(comparable, scaled, np.inf))


def _ratio(distance: np.ndarray, tolerated: np.ndarray) -> np.ndarray:
    return np.where(distance == 0, 0.0, distance / tolerated)


def _signs(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return np.signbit(x.real) + 2 * np.signbit(x.imag)
    if x.dtype.kind in "biu":
        return np.zeros(x.shape, np.bool_)
    return np.signbit(x)


def _describe(result: int, at: tuple[SupportsIndex, ...], e: np.ndarray, a: np.ndarray) -> str:
    place = [int(i) for i in at]
    return f"result {result} at {place} is {a[tuple(at)]!r}, JAX gives {e[tuple(at)]!r}"
