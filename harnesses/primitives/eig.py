"""Schur decompositions and eigenvalues of general matrices."""

import functools

import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import axes, every_axis, symbolic
from harnesses.compare import close_to_largest
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)


def _eig(case, a, dtype, left=False, right=True, condition=100, symbolic=every_axis):
    eig = functools.partial(
        lax.linalg.eig, compute_left_eigenvectors=left, compute_right_eigenvectors=right
    )
    params = {"left": left, "right": right}
    comparer = linalg.eig(left, right, condition)
    case = f"{case}_{name(dtype)}"
    return Harness(
        "eig", case, eig, (a,), comparer, params=params, symbolic=symbolic, derivatives=None
    )


def _regular(dtype):
    """Returns three matrices with well-conditioned eigenvalues; two have a NaN or infinity."""
    regular = random((5, 5), dtype)
    return regular, linalg.with_nonfinite(regular), linalg.with_nonfinite(regular, np.inf)


def _hard(dtype):
    """Returns normal, singular and badly scaled matrices, difficult for the QR algorithm."""
    return (
        np.zeros((5, 5), dtype),
        np.ones((5, 5), dtype),
        np.roll(np.eye(5, dtype=dtype), 1, axis=0),
        linalg.with_eigenvalues([1, 1, 2, 2, 2], dtype),
        linalg.with_eigenvalues(np.logspace(0, -12, 5), dtype),
        # Not larger: beyond 1e12 JAX's eigenvalues of float32 matrices are wrong, because LAPACK
        # does not scale them back.
        linalg.matrix(lambda rng: rng.normal(size=(5, 5)) * 1e10, dtype),
    )


def _defective(dtype):
    """Returns a Jordan block of size 5, and the condition number of its eigenvalue.

    An error e of the matrix changes the eigenvalue of a Jordan block of size n by e^(1/n).
    """
    eps = float(np.finfo(dtype).eps)
    return (2 * np.eye(5) + np.eye(5, k=1)).astype(dtype), 4 * eps ** (1 / 5) / (5 * eps)


def _power_sums(a):
    (w,) = lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return w.sum(-1), (w * w).sum(-1)


@harnesses
def eig():
    for dtype in DTYPES:
        for shape in ((1, 1), (0, 0)):
            yield _eig(f"{shape=}_right", random(shape, dtype), dtype)
        yield _eig("right", linalg.stacked(*_regular(dtype)), dtype)
        yield _eig("values", random((2, 4, 4), dtype), dtype, right=False)
        yield _eig("left", random((3, 3), dtype), dtype, left=True, right=False)
        hard, regular = _hard(dtype), _regular(dtype)
        defective, condition = _defective(dtype)
        matrices = linalg.stacked(*hard, *regular, defective)
        conditions = [1e4] * len(hard) + [100] * len(regular) + [condition]
        # The order of the eigenvalues makes no difference, so that derivatives can be compared.
        yield Harness(
            "eig",
            f"power_sums_{name(dtype)}",
            _power_sums,
            (linalg.matrix(lambda rng: np.diag([1, 2, 4]) + 0.3 * rng.normal(size=(3, 3)), dtype),),
            close_to_largest(256),
        )
        # Each matrix has a condition number, so that their count is fixed.
        yield _eig("both", matrices, dtype, left=True, condition=conditions, symbolic=axes(-2, -1))
    yield _eig("large", random((32, 32), np.float64), np.float64, condition=1e4)


@harnesses
@symbolic(every_axis)
def schur():
    for dtype in DTYPES:
        cases = {
            "shape=(1, 1)": random((1, 1), dtype),
            "shape=(0, 0)": np.zeros((0, 0), dtype),
            "hard": linalg.stacked(*_hard(dtype), *_regular(dtype), _defective(dtype)[0]),
        }
        for case, a in cases.items():
            yield Harness("schur", f"{case}_{name(dtype)}", lax.linalg.schur, (a,), linalg.schur)
        form = functools.partial(lax.linalg.schur, compute_schur_vectors=False)
        args = (random((3, 3), dtype),)
        yield Harness("schur", f"form_{name(dtype)}", form, args, linalg.schur)
