"""LU decompositions and their pivots."""

import functools

import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import axes_but, every_axis, symbolic
from harnesses.compare import nan_reaches
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)


def _nan_somewhere(expected, actual, args):
    """Checks that each matrix with NaN in JAX has NaN; in which elements depends on the pivots."""
    batches = [[np.where(np.isnan(x[0]).any(axis=(-2, -1)), np.nan, 0)] for x in (expected, actual)]
    return nan_reaches(*batches, args)


@harnesses
@symbolic(every_axis)
def lu():
    close = linalg.relative_to_norm(16)
    for dtype in DTYPES:
        for shape in ((4, 4), (5, 3), (3, 5), (1, 1), (0, 0), (0, 2), (2, 0), (0, 2, 2)):
            args = (random(shape, dtype),)
            yield Harness("lu", f"{shape=}_{name(dtype)}", lax.linalg.lu, args, close)
        hard = (
            random((3, 3), dtype),
            np.eye(3, dtype=dtype),
            np.zeros((3, 3), dtype),
            np.array([[1, 2, 3], [2, 4, 6], [1, 1, 1]], dtype),
            np.array([[1, 2, 1], [-1, 1, 3], [1, 5, -2]], dtype),
        )
        cases = {
            "hard": linalg.stacked(*hard),
            "graded": lambda rng, dtype=dtype: _graded(rng).astype(dtype),
        }
        if dtype in (np.float32, np.complex128):
            cases["large"] = random((80, 80), dtype)
        for case, a in cases.items():
            yield Harness("lu", f"{case}_{name(dtype)}", lax.linalg.lu, (a,), close)
        nan = (linalg.with_nonfinite(random((2, 4, 4), dtype)),)
        yield Harness("lu", f"nan_{name(dtype)}", lax.linalg.lu, nan, _nan_somewhere)
    # Which element is the pivot depends on how the size of a complex number is measured.
    a = np.array([[3 + 0j, 1], [2.2 + 2.2j, 1]], np.complex64)
    yield Harness("lu", "size_of_complex", lax.linalg.lu, (a,), close)


def _graded(rng):
    return rng.normal(size=(5, 5)) * np.logspace(0, -12, 5)


@harnesses
@symbolic(axes_but(-1))
def lu_pivots_to_permutation():
    for pivots, size in (
        (np.array([2, 1, 2], np.int32), 3),
        (np.array([[4, 1, 4], [0, 2, 3]], np.int32), 6),
        (np.zeros(0, np.int32), 3),
        (np.zeros((2, 0), np.int32), 0),
        (np.zeros((0, 2), np.int32), 2),
    ):
        to_permutation = functools.partial(
            lax.linalg.lu_pivots_to_permutation, permutation_size=size
        )
        yield Harness(
            "lu_pivots_to_permutation", f"shape={pivots.shape}_{size=}", to_permutation, (pivots,)
        )
