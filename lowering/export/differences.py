"""Measures how far the arrays of a model are from those of JAX, and where."""

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np


@dataclasses.dataclass(frozen=True)
class Difference:
    """How an output of a model differs from JAX's.

    Attributes:
      error: the largest difference beyond a spread, relative to the largest finite element.
      where: where the largest difference is, and what both have there.
      nan_of_jax: where JAX alone has NaN, as part of a sentence; empty if it is nowhere.
      nan_of_model: likewise for the model.
    """

    error: float
    where: str
    nan_of_jax: str
    nan_of_model: str


def difference(expected: np.ndarray, actual: Any, spread: Any = 0.0) -> Difference:
    """The difference of an array of a model from JAX's; NaN equals NaN.

    Args:
      expected: what JAX computes.
      actual: what the model computes, of the same shape.
      spread: how far each element may be from JAX's.
    """
    actual = np.asarray(actual)
    distances = np.where(are_nan(expected) | are_nan(actual), 0.0, _distances(expected, actual))
    beyond = np.maximum(distances - spread, 0)
    worst = float(np.max(beyond, initial=0))
    at = np.unravel_index(int(np.argmax(beyond)), beyond.shape) if worst else ()
    of_jax, of_model = are_nan(expected), are_nan(actual)
    return Difference(
        relative(worst, expected),
        f"at {_index(at)} JAX has {expected[at]}, and the model {actual[at]}" if worst else "",
        _only("JAX", "the model", of_jax & ~of_model, actual),
        _only("the model", "JAX", of_model & ~of_jax, expected),
    )


def relative(error: float, expected: np.ndarray) -> float:
    """An error, relative to the largest finite element."""
    wide: np.ndarray = expected.astype(_wide(expected))
    largest = np.max(np.abs(np.where(np.isfinite(wide), wide, 0)), initial=0)
    return error / float(largest) if largest and np.isfinite(error) else error


def overflow_alike(expected: np.ndarray, actual: np.ndarray, dtype: Any) -> np.ndarray:
    """Where two arrays are infinite with the same sign, or within 8 steps of that.

    With the precision of float32, what overflows in 16 bits may be just below the limit.

    Args:
      expected: what JAX computes, which has rounded each number to 16 bits.
      actual: what a model computes in float32.
      dtype: float16 or bfloat16.
    """
    info = ml_dtypes.finfo(dtype)
    # The limit is no number of bfloat16.
    limit = float(info.max) * (1 - 8 * float(info.eps))
    expected, actual = (x.astype(np.float64) for x in (expected, actual))
    is_beyond = (np.abs(expected) >= limit) & (np.abs(actual) >= limit)
    return is_beyond & (np.signbit(expected) == np.signbit(actual))


def are_nan(x: np.ndarray) -> np.ndarray:
    """Where an array has NaN."""
    return np.isnan(x.astype(_wide(x)))


def _distances(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """The distance of each element; that of integers is 0 for equal ones only."""
    if expected.dtype.kind in "iu" and actual.dtype.kind in "iu":
        # The difference of 64-bit numbers is one of 64 bits, without a sign.
        e, a = expected.astype(np.uint64), actual.astype(np.uint64)
        return np.where(expected > actual, e - a, a - e).astype(np.float64)
    e, a = expected.astype(_wide(expected)), actual.astype(_wide(expected))
    with np.errstate(all="ignore"):
        return np.where(e == a, 0.0, np.abs(e - a))


def _only(who: str, other: str, wrong: np.ndarray, values: np.ndarray) -> str:
    """Where JAX or the model alone has NaN: in how many elements, and the other's first value."""
    if not np.any(wrong):
        return ""
    at = tuple(np.argwhere(wrong)[0])
    return (
        f"{who} has NaN in {np.count_nonzero(wrong)} of {wrong.size} elements where {other} has "
        f"numbers, such as {values[at]} at {_index(at)}"
    )


def _wide(x: np.ndarray) -> type:
    return np.complex128 if x.dtype.kind == "c" else np.float64


def _index(at: Any) -> list[int]:
    return [int(i) for i in at]
