"""Comparers of matrix decompositions, and makers of matrices for which they are difficult.

A decomposition that is not unique cannot be compared with JAX's element by element. Instead its
defining properties are checked: the product of its factors is the matrix, the factors are
orthogonal or triangular, and the eigenvalues agree with JAX's. Errors are measured in units of n
eps times the norm of the matrix.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from harnesses.arguments import Maker, is_complex, random
from harnesses.compare import Arrays, Comparer, Comparison, nan_reaches

# The name of a check, the difference that it measures, and the tolerance.
Check = tuple[str, Any, float]


def _worst(checks: Iterator[Check]) -> Comparison:
    """Returns the comparison of the check whose difference is largest relative to its tolerance."""
    worst = Comparison(True)
    for name, difference, tolerated in checks:
        distance = np.abs(np.asarray(difference))
        if not distance.size:
            continue
        error = float(np.max(distance)) if np.all(np.isfinite(distance)) else np.inf
        ratio = error / tolerated if error else 0.0
        if ratio > worst.error:
            message = f"{name} is off by {error:.3g}, {tolerated:.3g} is tolerated"
            worst = Comparison(ratio <= 1, ratio, message)
    return worst


def checks(fun: Callable[[Arrays, Arrays, Arrays, float], Iterator[Check]]) -> Comparer:
    """Returns a comparer that applies the checks which `fun` yields.

    `fun` takes JAX's results, the results to be compared, the arguments, and n eps. The first
    argument is a batch of matrices. In all arrays that `fun` gets, the batch dimensions are merged
    into one. Matrices for which JAX's results are not finite are only compared by `nan_reaches`.
    """

    def compare(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
        comparison = nan_reaches(expected, actual, args)
        if not comparison.equal:
            return comparison
        *batch, m, n = args[0].shape

        def merged(arrays: Arrays) -> Arrays:
            return [x.reshape(math.prod(batch), *x.shape[len(batch) :]) for x in arrays]

        expected, actual, args = merged(expected), merged(actual), merged(args)
        finite = np.all([_is_finite(e) for e in expected], axis=0)
        eps = np.finfo(args[0].dtype).eps
        return _worst(
            fun(
                [e[finite] for e in expected],
                [_wide(a[finite]) for a in actual],
                [_wide(a[finite]) for a in args],
                max(m, n, 4) * eps,
            )
        )

    return compare


def _is_finite(x: np.ndarray) -> np.ndarray:
    """Returns, for each array of a batch, whether all its elements are finite."""
    return np.all(np.isfinite(x), axis=tuple(range(1, x.ndim)))


def relative_to_norm(factor: float = 4) -> Comparer:
    """Returns a comparer with a tolerance relative to the largest element of each matrix.

    Integers must be equal.
    """

    def compare(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
        if not all(np.all(np.isfinite(e)) for e in expected):
            return nan_reaches(expected, actual, args)
        return _worst(differences(expected, actual))

    def differences(expected: Arrays, actual: Arrays) -> Iterator[Check]:
        for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
            if e.dtype.kind in "iu":
                yield f"result {i}", e.astype(np.int64) - a.astype(np.int64), 0.5
            elif e.size:
                size = max(*e.shape[-2:], 4) if e.ndim > 1 else 4
                matrix = (-2, -1) if e.ndim > 2 else None
                largest = np.max(np.abs(_wide(e)), axis=matrix, keepdims=True)
                difference = (_wide(e) - _wide(a)) / np.where(largest == 0, 1, largest)
                yield f"result {i}", difference, factor * size * float(np.finfo(e.dtype).eps)

    return compare


def _wide(x: np.ndarray) -> np.ndarray:
    """Returns x in float64 or complex128 if it is inexact."""
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def adjoint(x: np.ndarray) -> np.ndarray:
    """Returns the conjugate transpose of each matrix of a batch."""
    return np.swapaxes(x, -1, -2).conj()


def _deviation_from_unitary(x: np.ndarray) -> np.ndarray:
    """Returns x^H x - I for each matrix of a batch."""
    return adjoint(x) @ x - np.eye(x.shape[-1])


def _norm(a: np.ndarray) -> np.ndarray:
    """Returns the norm of each matrix of a batch, with the matrix dimensions kept with size one.

    The norm of a zero matrix is replaced by 1, as it is used as a divisor.
    """
    norm = np.linalg.norm(a, axis=(-2, -1), keepdims=True)
    return np.where(norm == 0, 1, norm)


def _diagonal(x: np.ndarray) -> np.ndarray:
    return np.diagonal(x, axis1=-2, axis2=-1)


@checks
def qr(expected, actual, args, eps):
    """Checks that Q R is A, or A with permuted columns, and that diag(R) has JAX's signs."""
    (q, r, *p), (a,) = actual, args
    if p:
        yield "permutation", p[0] - expected[2], 0.5
        a = np.take_along_axis(a, p[0][..., np.newaxis, :], axis=-1)
    norm = _norm(a)
    yield "Q R", (q @ r - a) / norm, 4 * eps
    yield "orthogonality of Q", _deviation_from_unitary(q), 4 * eps
    yield "lower triangle of R", np.tril(r, -1), 1e-300
    # Elements of the diagonal that are not rounding noise must have JAX's sign.
    diagonal = _diagonal(expected[1]) / norm[..., 0]
    difference = _diagonal(r) / norm[..., 0] - diagonal
    yield "diagonal of R", np.where(np.abs(diagonal) > 100 * eps, difference, 0), 100 * eps


def eigh(lower: bool = True) -> Comparer:
    """Returns a comparer that checks A V = V W for Hermitian A.

    One triangle of the argument defines A: the lower one if `lower`, else the upper one.
    """

    @checks
    def compare(expected, actual, args, eps):
        (v, w), (a,) = actual, args
        strict = np.tril(a, -1) if lower else np.triu(a, 1)
        diagonal = np.real(_diagonal(a))[..., np.newaxis, :] * np.eye(a.shape[-1])
        a = strict + adjoint(strict) + diagonal
        norm = _norm(a)
        yield "eigenvalues", (w - expected[1]) / norm[..., 0], 4 * eps
        yield "A V - V W", (a @ v - v * w[..., np.newaxis, :]) / norm, 4 * eps
        yield "orthogonality of V", _deviation_from_unitary(v), 4 * eps

    return compare


@checks
def svd(expected, actual, args, eps):
    """Checks that U S V^H = A with orthogonal U and V."""
    (s, *vectors), (a,) = actual, args
    norm = _norm(a)
    yield "singular values", (s - expected[0]) / norm[..., 0], 4 * eps
    if vectors:
        u, vh = vectors
        k = s.shape[-1]
        product = (u[..., :k] * s[..., np.newaxis, :]) @ vh[..., :k, :]
        yield "U S V^H", (product - a) / norm, 8 * eps
        yield "orthogonality of U", _deviation_from_unitary(u), 8 * eps
        yield "orthogonality of V", _deviation_from_unitary(adjoint(vh)), 8 * eps


@checks
def schur(expected, actual, args, eps):
    """Checks that Z T Z^H = A with unitary Z, and that T is in standard form."""
    (t, *vectors), (a,) = actual, args
    norm = _norm(a)
    for z in vectors:
        yield "Z T Z^H", (z @ t @ adjoint(z) - a) / norm, 8 * eps
        yield "orthogonality of Z", _deviation_from_unitary(z), 8 * eps
    below = np.diagonal(t, -1, -2, -1)
    if is_complex(t.dtype):
        yield "lower triangle of T", np.tril(t, -1), 1e-300
    else:
        yield "lower triangle of T", np.tril(t, -2), 1e-300
        yield "adjacent blocks of T", below[..., 1:] * below[..., :-1], 1e-300
        step = np.where(below != 0, np.diff(_diagonal(t)), 0)
        yield "diagonals of blocks of T", step, 1e-300
        product = np.where(below != 0, np.diagonal(t, 1, -2, -1) * np.sign(below), -1)
        yield "signs of blocks of T", np.maximum(product, 0), 1e-300
    yield "norm of T", (_norm(t) - _norm(_wide(expected[0]))) / norm, 8 * eps


def eig(left: bool, right: bool, condition: float | Sequence[float] = 100) -> Comparer:
    """Returns a comparer of eigenvalues in any order, and of eigenvectors by norm and residual.

    Args:
      left: whether the second result is the left eigenvectors.
      right: whether the last result is the right eigenvectors.
      condition: an upper bound of the condition numbers of the eigenvalues: one for all matrices,
        or one for each matrix of the batch. The tolerance of eigenvalues is condition * n eps |A|.
    """

    @checks
    def compare(expected, actual, args, eps):
        (w, *vectors), (a, condition) = actual, args
        norm = _norm(a)
        difference = _unmatched(_wide(expected[0]), w) / norm[..., 0]
        yield "eigenvalues, by their condition,", difference / condition[..., np.newaxis], eps
        if not is_complex(a.dtype):
            yield "conjugate pairs", _unmatched(w, w.conj()), 1e-300
        if left:
            residual = adjoint(vectors[0]) @ a - w[..., np.newaxis] * adjoint(vectors[0])
            yield "left residual", residual / norm, 8 * eps
        if right:
            residual = a @ vectors[-1] - vectors[-1] * w[..., np.newaxis, :]
            yield "right residual", residual / norm, 8 * eps
        for v in vectors:
            yield "norms of eigenvectors", np.linalg.norm(v, axis=-2) - 1, 4 * eps
            # The component with the largest absolute value must be real.
            real = np.max(np.where(np.imag(v) == 0, np.abs(v), 0), axis=-2, initial=0)
            yield "phase", np.max(np.abs(v), axis=-2, initial=0) - real, 8 * eps

    def compare_with_condition(expected: Arrays, actual: Arrays, args: Arrays) -> Comparison:
        conditions = np.broadcast_to(condition, args[0].shape[:-2])
        return compare(expected, actual, [*args, conditions])

    return compare_with_condition


def _unmatched(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Returns the distance of each expected eigenvalue from the actual one it is matched with.

    The matching is greedy: each takes the nearest one that is left.
    """
    distances = []
    for batch in np.ndindex(expected.shape[:-1]):
        rest = list(actual[batch])
        for value in expected[batch]:
            nearest = int(np.argmin(np.abs(np.array(rest) - value)))
            distances.append(abs(rest.pop(nearest) - value))
    return np.reshape(distances, expected.shape)


def matrix(make: Callable[[np.random.Generator], np.ndarray], dtype: Any) -> Maker:
    """Returns a maker of arguments that converts the result of `make` to a dtype."""
    return lambda rng: make(rng).astype(dtype)


def _orthogonal(rng: np.random.Generator, n: int, dtype: Any) -> np.ndarray:
    """Returns a random orthogonal (or unitary) n x n matrix."""
    kind = np.complex128 if is_complex(dtype) else np.float64
    return np.linalg.qr(random((n, n), kind)(rng))[0]


def with_eigenvalues(values: Sequence[float], dtype: Any) -> Maker:
    """Returns a maker of a Hermitian matrix with these eigenvalues."""

    def make(rng: np.random.Generator) -> np.ndarray:
        q = _orthogonal(rng, len(values), dtype)
        a = (q * np.asarray(values)) @ adjoint(q)
        return ((a + adjoint(a)) / 2).astype(dtype)

    return make


def with_singular_values(shape: Sequence[int], values: Sequence[float], dtype: Any) -> Maker:
    """Returns a maker of a matrix with these singular values; all others are zero."""

    def make(rng: np.random.Generator) -> np.ndarray:
        m, n = shape
        u, v = _orthogonal(rng, m, dtype), _orthogonal(rng, n, dtype)
        k = len(values)
        return ((u[:, :k] * np.asarray(values)) @ v[:k]).astype(dtype)

    return make


def positive_definite(shape: Sequence[int], dtype: Any) -> Maker:
    """Returns a maker of Hermitian matrices whose eigenvalues are at least 1."""

    def make(rng: np.random.Generator) -> np.ndarray:
        kind = np.complex128 if is_complex(dtype) else np.float64
        a = random(shape, kind, -1, 1)(rng)
        return (a @ adjoint(a) + np.eye(shape[-1])).astype(dtype)

    return make


def stacked(*makers: Maker | np.ndarray) -> Maker:
    """Returns a maker of a batch of matrices of the same shape.

    One batch is faster than several harnesses: the algorithms take long to compile for each shape.
    """
    return lambda rng: np.stack([make(rng) if callable(make) else make for make in makers])


def with_nonfinite(maker: Maker, value: float = np.nan) -> Maker:
    """Returns a maker of the same matrix, or batch, with `value` in the first matrix.

    It replaces element [2, 1], or the nearest one in a smaller matrix: below the diagonal if
    possible.
    """

    def make(rng: np.random.Generator) -> np.ndarray:
        a = maker(rng).copy()
        first = a.reshape(-1, *a.shape[-2:])[0]
        first[min(2, a.shape[-2] - 1), min(1, a.shape[-1] - 1)] = value
        return a

    return make
