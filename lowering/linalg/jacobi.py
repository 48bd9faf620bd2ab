"""Eigenvalues of Hermitian matrices, and singular values, by Jacobi rotations.

One round rotates n/2 disjoint pairs of columns at once. A sweep is n - 1 rounds, in which every
pair is rotated once: R. Brent and F. Luk, The solution of singular-value and symmetric eigenvalue
problems on multiprocessor arrays, SIAM J. Sci. Stat. Comput. 6 (1985). Convergence is quadratic;
five to ten sweeps are usual. The rotations are those of G. Golub and C. Van Loan, Matrix
Computations, 4th edition, sections 8.5 and 8.6.3.

Errors of eigenvalues, singular values, orthogonality and reconstruction are at most a small
multiple of n eps, relative to the norm of the matrix.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import Array, lax

from lowering import avals, jax_compat
from lowering.linalg import masked
from lowering.linalg.householder import matmul, with_real_diagonal
from lowering.linalg.scaling import hypot, scaled, square

_MAX_SWEEPS = 40


def eigh(a: Array) -> tuple[Array, Array]:
    """The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns.

    Only the lower triangle is read. All results are NaN if an element of it is not finite.
    """
    n = a.shape[0]
    real = jnp.real(a).dtype
    if n == 0:
        return jnp.zeros(0, real), a
    a = jnp.where(masked.positions(n)[:, None] >= masked.positions(n), a, a.conj().T)
    scale, a = scaled(with_real_diagonal(a))
    even = _even(n)
    a, off_diagonal = masked.resized(a, even, even), ~masked.on_diagonal(even)
    tolerance = jnp.finfo(real).eps * jnp.sqrt(jnp.sum(square(a)))

    def is_unfinished(state):
        a, _, sweep = state
        rest = jnp.sqrt(jnp.sum(jnp.where(off_diagonal, square(a), 0)))
        return (rest > tolerance) & (sweep < _MAX_SWEEPS)

    def sweep(state):
        a, v, sweep = state
        return *_repeat(even - 1, _rotate_hermitian, a, v), sweep + 1

    state = (a, jnp.eye(even, dtype=a.dtype), jnp.zeros((), jnp.int32))
    a, v, _ = lax.while_loop(is_unfinished, sweep, state)
    w, v = masked.resized(jnp.real(masked.diagonal(a)), n), masked.resized(v, n, n)
    order = jnp.argsort(w)
    nan = _nan_unless_finite(scale)
    return jnp.take(w, order) * scale + nan, jnp.take(_of_unit_length(v), order, axis=1) + nan


def svd(a: Array, *, full_matrices: bool, compute_uv: bool) -> tuple[Array, ...]:
    """s and, if `compute_uv`, U and V^H of an m x n matrix with m > 0 and n > 0.

    The method factors A = Q R and rotates the rows of R from one side: Z. Drmac and K. Veselic, New
    fast and accurate Jacobi SVD algorithm, SIAM J. Matrix Anal. Appl. 29 (2008). It omits their
    pivoting. All results are NaN if an element is not finite.
    """
    m, n = a.shape
    if avals.is_at_most(m, n) and m != n:
        s, *vectors = svd(a.conj().T, full_matrices=full_matrices, compute_uv=compute_uv)
        return (s, *(x.conj().T for x in reversed(vectors)))
    scale, a = scaled(a)
    nan = _nan_unless_finite(scale)
    k = jax_compat.min_dim(m, n)
    if avals.is_at_most(n, m):
        q, r = lax.linalg.qr(a, full_matrices=full_matrices)
        # The rows of R are what is rotated, so left and right change places.
        s, right, left = _rotated(r[:n].conj().T, compute_uv=compute_uv, full_matrices=False)
        left = jnp.concatenate([matmul(q[:, :n], left), q[:, n:]], axis=1)
    else:
        # Which of m and n is larger is known only when the program runs.
        s, left, right = _rotated(a, compute_uv=compute_uv, full_matrices=full_matrices)
    s = masked.resized(s, k) * scale + nan
    if not compute_uv:
        return (s,)
    vh = masked.resized(right.conj().T, n if full_matrices else k, n)
    return s, left + nan, vh + nan


def _rotated(a: Array, *, compute_uv: bool, full_matrices: bool) -> tuple[Array, Array, Array]:
    """The n singular values of an m x n matrix, descending, U, and all of V.

    U has min(m, n) columns, or m if `full_matrices`. Without `compute_uv` U and V are no use.
    """
    m, n = a.shape
    real, even = jnp.real(a).dtype, _even(n)
    w = masked.resized(a, m, even)
    tolerance = jnp.finfo(real).eps * jnp.asarray(jax_compat.max_dim(m, 8), real)

    def is_unfinished(state):
        *_, largest, sweep = state
        return (largest > tolerance) & (sweep < _MAX_SWEEPS)

    def sweep(state):
        w, v, _, sweep = state
        none = jnp.zeros((), real)
        return *_repeat(even - 1, _rotate_columns, w, v, none), sweep + 1

    # The rotations are accumulated in v only if vectors are wanted: else v has no rows.
    v = jnp.eye(even if compute_uv else 0, even, dtype=a.dtype)
    state = (w, v, jnp.full((), jnp.inf, real), jnp.zeros((), jnp.int32))
    w, v, *_ = lax.while_loop(is_unfinished, sweep, state)
    w = masked.resized(w, m, n)
    s = jnp.sqrt(jnp.sum(square(w), axis=0))
    order = jnp.argsort(-s)
    s = jnp.take(s, order)
    # The columns of w are orthogonal. QR completes them to a basis where they are zero.
    k = jax_compat.min_dim(m, n)
    w, v = jnp.take(w, order, axis=1), jnp.take(masked.resized(v, n, n), order, axis=1)
    w, first = masked.resized(w, m, k), masked.resized(s, k)
    basis, r = lax.linalg.qr(w / jnp.where(first > 0, first, 1), full_matrices=full_matrices)
    diagonal = masked.diagonal(masked.resized(r, k, k))
    sign = jnp.where(first > 0, diagonal / jnp.where(first > 0, abs(diagonal), 1), 1)
    columns = basis.shape[1]
    sign = jnp.where(masked.positions(columns) < k, masked.resized(sign, columns), 1)
    return s, basis * sign, _of_unit_length(v)


def _of_unit_length(v: Array) -> Array:
    """Columns that many rotations have made a little longer or shorter, of length 1."""
    return v / jnp.sqrt(jnp.sum(square(v), axis=0))


def _nan_unless_finite(scale: Array) -> Array:
    return jnp.where(jnp.isfinite(scale), jnp.zeros_like(scale), jnp.full_like(scale, jnp.nan))


def _repeat(times: int, step: Callable[..., tuple[Array, ...]], *state: Array) -> tuple[Array, ...]:
    """The state after `times` steps."""
    return lax.fori_loop(0, times, lambda _, state: step(*state), state)


def _even(n: int) -> int:
    """The even number that is `n` or follows it; n may be symbolic."""
    return 2 * ((n + 1) // 2)


def _next_pairs(n: int) -> Array:
    """The order of columns that makes i and i + n/2 the pairs of the next round.

    The pairs of all rounds are those of a round-robin tournament.
    """
    half, i = n // 2, masked.positions(n)
    order = jnp.where(i < half, i - 1, jnp.where(i < n - 1, i + 1, half - 1))
    return jnp.where(i == 0, 0, jnp.where(i == 1, half, order))


def _rotation(alpha: Array, beta: Array, gamma: Array) -> tuple[Array, Array, Array]:
    """t, c and s of the rotations that make [[alpha, gamma], [conj(gamma), beta]] diagonal.

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


def _halves(x: Array) -> Sequence[Array]:
    """The halves of the last axis."""
    half = x.shape[-1] // 2
    return lax.split(x, (half, x.shape[-1] - half), axis=x.ndim - 1)


def _rotate(x: Array, c: Array, s: Array) -> Array:
    """Rotates the columns i and i + n/2 of x."""
    p, q = _halves(x)
    return jnp.concatenate([c * p - s.conj() * q, s * p + c * q], axis=1)


def _rotate_hermitian(a: Array, v: Array) -> tuple[Array, Array]:
    """Does one round of two-sided rotations, and reorders columns for the next round."""
    n = a.shape[0]
    diagonal = jnp.real(masked.diagonal(a))
    alpha, beta = _halves(diagonal)
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
    n = w.shape[1]
    p, q = _halves(w)
    alpha, beta = jnp.sum(square(p), axis=0), jnp.sum(square(q), axis=0)
    gamma = jnp.sum(p.conj() * q, axis=0)
    size = abs(gamma)
    length = jnp.sqrt(alpha) * jnp.sqrt(beta)
    cosine = jnp.where(length > 0, size / jnp.where(length > 0, length, 1), 0)
    _, c, s = _rotation(alpha, beta, gamma)
    order = _next_pairs(n)
    w, v = jnp.take(_rotate(w, c, s), order, axis=1), jnp.take(_rotate(v, c, s), order, axis=1)
    return w, v, jnp.maximum(largest, jnp.max(cosine))
