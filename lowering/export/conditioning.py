"""Measures how far results of a JAX function move when arguments change by few rounding errors."""

from collections.abc import Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from lowering.export.differences import difference
from lowering.export.entry import Reference

_DRAWS = 4
_ROUNDING_ERRORS = 4


def moves(
    reference: Reference, samples: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> list[float]:
    """How far each output of JAX moves, relative to its largest element.

    Each number of the arguments, except parameters, is increased or decreased by a few rounding
    errors of its dtype, several times at random. An output that moves by as much as a model differs
    from JAX says nothing about the model: the function is ill-conditioned there, or has a jump.

    Args:
      reference: the JAX function.
      samples: inputs of it.
      expected: what it computes of them.

    Returns:
      A number for each output; infinity where a number becomes NaN or the reverse.
    """
    rng = np.random.default_rng(0)
    leaves, tree = jax.tree_util.tree_flatten(reference.arguments(samples))
    weights, inputs = leaves[: reference.weights], leaves[reference.weights :]
    largest = [0.0] * len(expected)
    for _ in range(_DRAWS):
        perturbed = weights + [_perturbed(x, rng) for x in inputs]
        arguments = jax.tree_util.tree_unflatten(tree, perturbed)
        results = reference.results(reference.fun(*arguments))
        largest = list(map(max, largest, map(_move, expected, results)))
    return largest


def _move(expected: np.ndarray, result: np.ndarray) -> float:
    found = difference(expected, result)
    return np.inf if found.nan_of_jax or found.nan_of_model else found.error


def _perturbed(x: Any, rng: np.random.Generator) -> Any:
    if not jax.dtypes.issubdtype(x.dtype, np.inexact):
        return x
    errors = rng.choice([-_ROUNDING_ERRORS, _ROUNDING_ERRORS], x.shape)
    wide = np.asarray(x).astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    factors = 1 + errors * float(ml_dtypes.finfo(x.dtype).eps)
    return np.asarray(wide * factors).astype(x.dtype)
