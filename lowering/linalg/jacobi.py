"""Eigenvalues of Hermitian matrices, and singular values, by Jacobi rotations.

One round rotates n/2 disjoint pairs of columns at once. A sweep is n - 1 rounds, in which every
pair is rotated once: R. Brent and F. Luk, The solution of singular-value and symmetric eigenvalue
problems on multiprocessor arrays, SIAM J. Sci. Stat. Comput. 6 (1985). Convergence is quadratic;
five to ten sweeps are usual. The rotations are those of G. Golub and C. Van Loan, Matrix
Computations, 4th edition, sections 8.5 and 8.6.3.

Errors of eigenvalues, singular values, orthogonality and reconstruction are at most a small
multiple of n eps, relative to the norm of the matrix.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lowering.linalg import masked
from lowering.linalg.householder import matmul, with_real_diagonal
from lowering.linalg.scaling import hypot, scaled, square

_MAX_SWEEPS = 40


def eigh(a: Array) -> tuple[Array, Array]:
    """Returns the eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns.

    Only the lower triangle is read. All results are NaN if an element of it is not finite.
    """
    n = a.shape[0]
    real = jnp.real(a).dtype
    if n == 0:
        return jnp.zeros(0, real), a
    a = jnp.where(masked.positions(n)[:, None] >= masked.positions(n), a, a.conj().T)
    scale, a = scaled(with_real_diagonal(a))
    a, off_diagonal = _even(a), ~masked.on_diagonal(n + n % 2)
    tolerance = jnp.finfo(real).eps * jnp.sqrt(jnp.sum(square(a)))

    def is_unfinished(state):
        a, _, sweep = state
        rest = jnp.sqrt(jnp.sum(jnp.where(off_diagonal, square(a), 0)))
        return (rest > tolerance) & (sweep < _MAX_SWEEPS)

    def sweep(state):
        a, v, sweep = state
        return *_repeat(len(a) - 1, _rotate_hermitian, a, v), sweep + 1

    state = (a, jnp.eye(len(a), dtype=a.dtype), jnp.zeros((), jnp.int32))
    a, v, _ = lax.while_loop(is_unfinished, sweep, state)
    w, v = jnp.real(masked.diagonal(a))[:n], v[:n, :n]
    order = jnp.argsort(w)
    nan = _nan_unless_finite(scale)
    return jnp.take(w, order) * scale + nan, jnp.take(v, order, axis=1) + nan


def svd(a: Array, *, full_matrices: bool, compute_uv: bool) -> tuple[Array, ...]:
    """Returns s and, if `compute_uv`, U and V^H of an m x n matrix with m > 0 and n > 0.

    The method factors A = Q R and rotates the rows of R from one side: Z. Drmac and K. Veselic, New
    fast and accurate Jacobi SVD algorithm, SIAM J. Matrix Anal. Appl. 29 (2008). It omits their
    pivoting. All results are NaN if an element is not finite.
    """
    m, n = a.shape
    if m < n:
        s, *vectors = svd(a.conj().T, full_matrices=full_matrices, compute_uv=compute_uv)
        return (s, *(x.conj().T for x in reversed(vectors)))
    real = jnp.real(a).dtype
    scale, a = scaled(a)
    nan = _nan_unless_finite(scale)
    q, r = lax.linalg.qr(a, full_matrices=full_matrices)
    w = _even(r[:n].conj().T)
    tolerance = jnp.finfo(real).eps * max(m, 8)

    def is_unfinished(state):
        *_, largest, sweep = state
        return (largest > tolerance) & (sweep < _MAX_SWEEPS)

    def sweep(state):
        w, v, _, sweep = state
        none = jnp.zeros((), real)
        return *_repeat(len(w) - 1, _rotate_columns, w, v, none), sweep + 1

    # The rotations are accumulated in v only if vectors are wanted: else v has no rows.
    v = jnp.eye(len(w) if compute_uv else 0, len(w), dtype=a.dtype)
    state = (w, v, jnp.full((), jnp.inf, real), jnp.zeros((), jnp.int32))
    w, v, *_ = lax.while_loop(is_unfinished, sweep, state)
    w, v = w[:n, :n], v[:n, :n]
    s = jnp.sqrt(jnp.sum(square(w), axis=0))
    order = jnp.argsort(-s)
    s = jnp.take(s, order)
    if not compute_uv:
        return (s * scale + nan,)
    # The columns of w are orthogonal. QR completes them to a basis where they are zero.
    w, v = jnp.take(w, order, axis=1), jnp.take(v, order, axis=1)
    basis, diagonal = lax.linalg.qr(w / jnp.where(s > 0, s, 1))
    diagonal = masked.diagonal(diagonal)
    right = basis * jnp.where(s > 0, diagonal / jnp.where(s > 0, abs(diagonal), 1), 1)
    left = jnp.concatenate([matmul(q[:, :n], v), q[:, n:]], axis=1)
    return s * scale + nan, left + nan, right.conj().T + nan


def _nan_unless_finite(scale: Array) -> Array:
    return jnp.where(jnp.isfinite(scale), 0, jnp.nan).astype(scale.dtype)


def _repeat(times: int, step: Callable[..., tuple[Array, ...]], *state: Array) -> tuple[Array, ...]:
    """Returns the state after `times` steps."""
    return lax.scan(lambda state, _: (step(*state), None), state, length=times)[0]


def _even(a: Array) -> Array:
    """Returns a square matrix of even size: adds a row and column of zeros if the size is odd."""
    extra = len(a) % 2
    return jnp.pad(a, ((0, extra), (0, extra)))


def _next_pairs(n: int) -> np.ndarray:
    """Returns the order of columns that makes i and i + n/2 the pairs of the next round.

    The pairs of all rounds are those of a round-robin tournament.
    """
    half = n // 2
    if half == 1:
        return np.arange(2, dtype=np.int32)
    top = [0, half, *range(1, half - 1)]
    return np.array([*top, *range(half + 1, n), half - 1], np.int32)


def _rotation(alpha: Array, beta: Array, gamma: Array) -> tuple[Array, Array, Array]:
    """Returns t, c and s of the rotations that make [[alpha, gamma], [conj(gamma), beta]] diagonal.

    Columns p and q become c p - conj(s) q and s p + c q; s includes a phase. The eigenvalues are
    alpha - t |gamma| and beta + t |gamma|.
    """
    size = abs(gamma)
    is_zero = size == 0
    phase = jnp.where(is_zero, 1, gamma / jnp.where(is_zero, 1, size)).astype(gamma.dtype)
    zeta = (beta - alpha) / (2 * jnp.where(is_zero, 1, size))
    sign = jnp.where(zeta < 0, -1, 1).astype(zeta.dtype)
    t = jnp.where(is_zero, 0, sign / (abs(zeta) + hypot(jnp.ones_like(zeta), zeta)))
    c = 1 / jnp.sqrt(1 + t * t)
    return t, c, c * t * phase


def _rotate(x: Array, c: Array, s: Array) -> Array:
    """Rotates the columns i and i + n/2 of x."""
    p, q = jnp.split(x, 2, axis=1)
    return jnp.concatenate([c * p - s.conj() * q, s * p + c * q], axis=1)


def _rotate_hermitian(a: Array, v: Array) -> tuple[Array, Array]:
    """Does one round of two-sided rotations, and reorders columns for the next round."""
    n = len(a)
    diagonal = jnp.real(masked.diagonal(a))
    alpha, beta = jnp.split(diagonal, 2)
    gamma = masked.diagonal(a[: n // 2, n // 2 :])
    t, c, s = _rotation(alpha, beta, gamma)
    a = _rotate(_rotate(a, c, s).conj().T, c, s)
    change = t * abs(gamma)
    diagonal = jnp.concatenate([alpha - change, beta + change]).astype(a.dtype)
    a = jnp.where(masked.on_diagonal(n), diagonal, a)
    paired = masked.on_diagonal(n, n // 2) | masked.on_diagonal(n, -(n // 2))
    a = jnp.where(paired, 0, a)
    order = _next_pairs(n)
    a = jnp.take(jnp.take(a, order, axis=0), order, axis=1)
    return a, jnp.take(_rotate(v, c, s), order, axis=1)


def _rotate_columns(w: Array, v: Array, largest: Array) -> tuple[Array, Array, Array]:
    """Does one round of one-sided rotations, and reorders columns for the next round.

    `largest` becomes its maximum with the cosines of the angles between the rotated columns.
    """
    n = len(w)
    p, q = jnp.split(w, 2, axis=1)
    alpha, beta = jnp.sum(square(p), axis=0), jnp.sum(square(q), axis=0)
    gamma = jnp.sum(p.conj() * q, axis=0)
    size = abs(gamma)
    length = jnp.sqrt(alpha) * jnp.sqrt(beta)
    cosine = jnp.where(length > 0, size / jnp.where(length > 0, length, 1), 0)
    _, c, s = _rotation(alpha, beta, gamma)
    order = _next_pairs(n)
    w, v = jnp.take(_rotate(w, c, s), order, axis=1), jnp.take(_rotate(v, c, s), order, axis=1)
    return w, v, jnp.maximum(largest, jnp.max(cosine))
