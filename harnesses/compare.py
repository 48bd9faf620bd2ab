"""How the results of a cell are compared with JAX's.

A comparer is a function of JAX's results, the results of the cell and the arguments, all as flat
lists of arrays, and returns a `Comparison`. Shapes and dtypes have been compared before.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import SupportsIndex

import jax
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


def worst_ulps(expected: Arrays, actual: Arrays) -> float | None:
    """The worst error of a floating-point number, in units of the last place of the expected one.

    The error of a complex number is in units of the larger one of its parts. A NaN or an infinity
    that only one of the results has counts as infinite. None if there are no floating-point
    numbers.

    Args:
      expected: the expected results.
      actual: results of the same shapes and dtypes.
    """
    worst = None
    for e, a in zip(expected, actual, strict=True):
        if jax.dtypes.issubdtype(e.dtype, np.inexact):
            worst = max(worst or 0.0, float(np.max(_ulps(e, a), initial=0)))
    return worst


def _ulps(e: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The error of each element in units of the last place of `e`."""
    info = ml_dtypes.finfo(e.dtype)
    wide = np.complex128 if e.dtype.kind == "c" else np.float64
    e, a = np.asarray(e, wide), np.asarray(a, wide)
    size = np.maximum(np.abs(e.real), np.abs(e.imag))
    _, exponent = np.frexp(size)
    unit = np.where(size == 0, 0.0, np.ldexp(float(info.eps), exponent - 1))
    unit = np.maximum(unit, float(info.smallest_subnormal))
    errors = [np.zeros(e.shape)]
    for x, y in ((e.real, a.real), (e.imag, a.imag)):
        with np.errstate(all="ignore"):
            same = (x == y) | np.isnan(e) & np.isnan(a)
            # Both are divided first, as the difference of two numbers may overflow.
            error = np.where(np.isfinite(e) & np.isfinite(a), np.abs(x / unit - y / unit), np.inf)
        errors.append(np.where(same, 0.0, error))
    return np.maximum.reduce(errors)


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


def close_to_largest(ulps: float, only_finite: bool = False) -> Comparer:
    """Close, relative to the largest finite element of all results; integers are equal.

    Which product overflows depends on the order of multiplications, so that numbers near the limit
    of the dtype may be infinite, and complex numbers with a part that is not finite are all equal.

    Args:
      ulps: the tolerance, in units of the dtype's epsilon; a sixteenth of it for 16-bit dtypes.
      only_finite: whether to compare only elements that are finite in JAX.
    """

    def compare(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
        comparisons = [Comparison(True)]
        inexact = [e for e in expected if e.dtype.kind not in "biu"]
        largest = max((_largest(e) for e in inexact), default=0.0)
        for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
            if e.dtype.kind in "biu":
                comparisons.append(exact([e], [a], args))
                continue
            eps = float(ml_dtypes.finfo(e.dtype).eps) / (16 if e.dtype.itemsize == 2 else 1)
            error = _errors(e, a, ulps * eps, ulps * eps * largest)
            ignored = _overflow(e, a) | (only_finite & ~np.isfinite(e))
            error = np.where(ignored, 0.0, error)
            if error.size:
                at = np.unravel_index(np.argmax(error), error.shape)
                worst = float(error[at])
                comparisons.append(Comparison(worst <= 1, worst, _describe(i, at, e, a)))
        return max(comparisons, key=lambda comparison: comparison.error)

    return compare


def _largest(x: np.ndarray) -> float:
    return float(np.max(np.abs(np.where(np.isfinite(x), x, 0)), initial=0))


def _overflow(e: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Where both of two arrays are infinite, or nearly."""
    if e.dtype.kind == "c":
        return ~np.isfinite(e) & ~np.isfinite(a)
    limit = float(ml_dtypes.finfo(e.dtype).max) / 16
    return (np.abs(e) > limit) & (np.abs(a) > limit) & (np.signbit(e) == np.signbit(a))


def signed(comparer: Comparer) -> Comparer:
    """Like another comparer; besides, zeros have the same sign where both results are zero."""

    def compare(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
        for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
            wrong = (e == 0) & (a == 0) & (_signs(e) != _signs(a))
            if np.any(wrong):
                at = tuple(np.argwhere(wrong)[0])
                return Comparison(False, np.inf, _describe(i, at, e, a))
        return comparer(expected, actual, args)

    return compare


def close_in_terms(terms: Callable[[Arrays], np.ndarray], ulps: float = 8) -> Comparer:
    """Close, in units of the last place of the result, or of its terms if they are larger.

    Where the terms of a sum cancel, their rounding errors are all that is left.

    Args:
      terms: a function of the arguments that returns the size of the largest term of each element.
      ulps: the tolerance, in units of the dtype's epsilon.
    """

    def compare(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
        (e,), (a,) = expected, actual
        info = ml_dtypes.finfo(e.dtype)
        relative = ulps * float(info.eps)
        # Subnormal results may be flushed to zero.
        tolerated = relative * terms(args) + 2 * float(info.tiny)
        error = _errors(e, a, relative, np.minimum(tolerated, float(info.max)))
        # What is left of terms that nearly overflow may be any number.
        error[(tolerated >= float(info.max)) & ~np.isnan(e) & ~np.isnan(a)] = 0
        if not error.size or error.max() <= 1:
            return Comparison(True, float(error.max(initial=0)))
        at = np.unravel_index(np.argmax(error), error.shape)
        return Comparison(False, float(error[at]), _describe(0, at, e, a))

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


# The least and the largest size of arguments that are moderate, and of those near one.
_MODERATE, _NEAR_ONE = (2.0**-100, 2.0**16), (2.0**-10, 2.0**10)


def near_within(
    sizes: tuple[float, float], relative: float, absolute: float, largest: float = math.inf
) -> Comparer:
    """Results of an elementwise function are near where the arguments are of moderate size.

    `sizes` has the smallest and the largest of their magnitudes. A part of a complex one may be
    zero, too. Results in JAX above `largest` do not count.
    """
    return functools.partial(_compare_within, sizes, relative, absolute, largest)


def _compare_within(
    sizes: tuple[float, float],
    relative: float,
    absolute: float,
    largest: float,
    expected: Arrays,
    actual: Arrays,
    args: Arrays,
) -> Comparison:
    for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
        counts = [np.broadcast_to(_is_within(sizes, x), e.shape) for x in args]
        is_large = np.abs(e).astype(np.float64) > largest
        counts = np.logical_and.reduce(counts) & ~np.isnan(e) & ~is_large
        info = ml_dtypes.finfo(e.dtype)
        # A subnormal result may be zero; in float16 these are larger than the absolute tolerance.
        smallest = max(absolute, float(info.smallest_normal))
        accepted = max(relative, 4 * float(info.eps)), smallest
        error = np.where(counts, _errors(e, a, *accepted), 0.0)
        if error.max(initial=0.0) > 1:
            at = np.unravel_index(np.argmax(error), error.shape)
            return Comparison(False, float(error[at]), _describe(i, at, e, a))
    return Comparison(True)


def _is_within(sizes: tuple[float, float], x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return np.logical_and.reduce(
            [_is_within(sizes, part) | (part == 0) for part in (x.real, x.imag)]
        )
    least, largest = sizes
    size = np.abs(np.asarray(x, np.float64))
    return (size >= least) & (size <= largest)


def finite_for_infinite(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
    """Infinities may be the largest finite numbers of their sign; all other results are equal."""

    def with_infinities(e, a):
        if e.dtype.kind != a.dtype.kind or e.shape != a.shape:
            return a
        is_largest = np.isinf(e) & (a == np.copysign(ml_dtypes.finfo(a.dtype).max, e))
        return np.where(is_largest, e, a).astype(a.dtype)

    replaced = [with_infinities(e, a) for e, a in zip(expected, actual, strict=True)]
    return close(ulps=0)(expected, replaced, args)


# The comparers of results that a limitation covers.
LOOSER: Mapping[Looser, Comparer] = {
    Looser.NAN_REACHES: nan_reaches,
    Looser.MODERATE: near_within(_MODERATE, 2e-5, 1e-6),
    Looser.MODERATE_WITH_FEWER_DIGITS: near_within(_MODERATE, 5e-4, 1e-5),
    Looser.MODERATE_RESULTS: near_within(_MODERATE, 2e-5, 1e-6, 2.0**100),
    Looser.NEAR_ONE: near_within(_NEAR_ONE, 2e-5, 1e-6),
    Looser.FINITE_FOR_INFINITE: finite_for_infinite,
}


def _errors(e: np.ndarray, a: np.ndarray, rtol: float, atol: float | np.ndarray) -> np.ndarray:
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
