"""Schur decompositions, and eigenvalues and eigenvectors from them.

The QR algorithm on a Hessenberg matrix computes them, with double shifts for a real matrix and
single shifts for a complex one: G. Golub and C. Van Loan, Matrix Computations, 4th edition,
sections 7.4 to 7.6. Exceptional shifts and the standard form of blocks are those of LAPACK's xHSEQR
and xLANV2 (Z. Bai and J. Demmel, On swapping diagonal blocks in real Schur form, Linear Algebra
Appl. 186 (1993)).

The result is the exact Schur form of a matrix that differs from the given one by a small multiple
of n eps in norm. Matrices are not balanced first.
"""

import jax.numpy as jnp
from jax import Array, lax

from lowering import avals, jax_compat
from lowering.linalg import householder, masked
from lowering.linalg.householder import matmul
from lowering.linalg.scaling import hypot, scaled, size, square

# The number of steps per eigenvalue after which the iteration has failed, as in LAPACK.
_MAX_STEPS = 30


def schur(a: Array, *, compute_vectors: bool = True) -> tuple[Array, Array]:
    """The Schur form T and, if `compute_vectors`, the unitary Z with a = Z T Z^H.

    T is upper triangular. If `a` is real, T has a 2 x 2 block on the diagonal for each pair of
    complex eigenvalues, with equal diagonal elements and off-diagonal elements of opposite signs.
    All results are NaN if an element of `a` is not finite, or if the iteration fails to converge.
    Without vectors Z has no rows.
    """
    n = a.shape[0]
    is_complex = jnp.issubdtype(a.dtype, jnp.complexfloating)
    scale, a = scaled(a)
    reflectors, taus = householder.hessenberg(a)
    columns = masked.positions(n)
    t = jnp.where(columns[:, None] > columns + 1, 0, reflectors)
    if compute_vectors:
        # The reflectors act on all coordinates but the first.
        z = jnp.eye(n, dtype=a.dtype)
        if not avals.is_at_most(n, 1):
            product = householder.product(reflectors[1:, :-1], taus)
            z = jnp.where(masked.positions(n) > 0, jnp.pad(product, ((1, 0), (1, 0))), z)
    else:
        z = jnp.zeros((0, n), a.dtype)
    if avals.is_at_most(n, 1):
        return t * scale, z
    width = 2 if is_complex else 3
    norm = jnp.max(jnp.sum(abs(t), axis=1))

    def is_unfinished(state):
        _, _, last, _, steps = state
        return (last > 0) & (steps < _MAX_STEPS * jax_compat.max_dim(n, 10))

    def step(state):
        t, z, last, since, steps = state
        t, below = _deflated(t, last, norm)
        # The active block is first ... last: no zero just below the diagonal divides it yet.
        first = jnp.max(jnp.where((columns <= last) & (below == 0), columns, 0))
        is_done = last - first + 1 < width
        start = _first_column(t, below, first, last, since + 1)
        # For a finished block the range of the sweep is empty.
        stop = jnp.where(is_done, first, last)
        t, z = lax.fori_loop(
            first, stop, lambda k, tz: _chase(k, first, last, start, width, *tz), (t, z)
        )
        last = jnp.where(is_done, first - 1, last)
        return t, z, last, jnp.where(is_done, 0, since + 1), steps + 1

    zero = jnp.zeros((), jnp.int32)
    state = (t, z, jnp.full((), n - 1, jnp.int32), zero, zero)
    t, z, last, *_ = lax.while_loop(is_unfinished, step, state)
    if is_complex:
        t = jnp.where(columns[:, None] > columns, 0, t)
    else:
        t, z = lax.fori_loop(0, n - 1, lambda k, tz: _standardize(k, *tz), (t, z))
    failed = ~jnp.isfinite(scale) | (last > 0)
    return jnp.where(failed, jnp.nan, t * scale), jnp.where(failed, jnp.nan, z)


def _deflated(t, last, norm):
    """T without negligible elements below the diagonal, and what is left of these elements.

    The latter are a vector: element i is that of row i, and the first is zero.
    """
    n = t.shape[0]
    diagonal = size(masked.diagonal(t))
    below = jnp.concatenate([jnp.zeros(1, t.dtype), masked.diagonal(t, -1)])
    neighbours = diagonal + jnp.concatenate([jnp.zeros(1, diagonal.dtype), diagonal[:-1]])
    eps = jnp.finfo(diagonal.dtype).eps
    is_negligible = size(below) <= eps * jnp.maximum(neighbours, eps * norm)
    t = jnp.where(masked.on_diagonal(n, -1) & is_negligible[:, None], 0, t)
    return t, jnp.where(is_negligible, 0, below)


def _first_column(t, below, first, last, step):
    """The vector with which the sweep of the block first ... last starts.

    It is the first column of the shifted block (complex), or of the product of two shifted blocks
    (real). The elements of the block start at position `first`; all others are zero. `below` is the
    vector from `_deflated`.
    """
    a, b, c, d = masked.block(t, last - 1)
    h00, h01, _, h11 = masked.block(t, first)
    h10, h21 = masked.element(below, first + 1), masked.element(below, first + 2)
    is_exceptional = step % 10 == 0
    if jnp.issubdtype(t.dtype, jnp.complexfloating):
        # Wilkinson's shift: the eigenvalue of the last 2 x 2 block nearer to its last element.
        half = (a - d) / 2
        product = b * c
        root = jnp.sqrt(half * half + product)
        other = jnp.where(jnp.real(half.conj() * root) < 0, half - root, half + root)
        shift = d - jnp.where(other == 0, 0, product / jnp.where(other == 0, 1, other))
        shift = jnp.where(is_exceptional, d + 0.75 * size(c), shift)
        values = [h00 - shift, h10]
    else:
        extra = abs(c) + abs(masked.element(below, last - 1))
        a = jnp.where(is_exceptional, 0.75 * extra + d, a)
        b, c = jnp.where(is_exceptional, -0.4375 * extra, b), jnp.where(is_exceptional, extra, c)
        d = jnp.where(is_exceptional, a, d)
        x0 = ((h00 - a) * (h00 - d) - b * c) / jnp.where(h10 == 0, 1, h10) + h01
        values = [x0, (h00 - a) + (h11 - d), h21]
    offsets = masked.positions(t.shape[0]) - first
    vector = jnp.zeros((), t.dtype)
    for i, value in enumerate(values):
        vector = jnp.where(offsets == i, value, vector)
    return vector


def _chase(k, first, last, start, width, t, z):
    """Reflects rows and columns k to k + width - 1, which moves the bulge down by one row."""
    positions = masked.positions(t.shape[0])
    x = jnp.where(k == first, start, masked.column(t, k - 1))
    x = jnp.where((positions >= k) & (positions < k + width) & (positions <= last), x, 0)
    v, tau, _ = householder.reflector(x, k)
    t = householder.apply_left(t, v, tau.conj())
    is_cleared = (positions > k) & (positions < k + width) & (positions <= last) & (k > first)
    t = jnp.where(is_cleared[:, None] & (positions == k - 1), 0, t)
    return householder.apply_right(t, v, tau), householder.apply_right(z, v, tau)


def _standardize(k, t, z):
    """Rotates the real 2 x 2 block at k into standard form: triangular for real eigenvalues."""
    a, b, c, d = masked.block(t, k)
    eps = jnp.finfo(t.dtype).eps

    def safe(x):
        return jnp.where(x == 0, 1, x)

    def sign(x):
        return jnp.where(jnp.signbit(x), -1, 1).astype(x.dtype)

    # Real eigenvalues.
    p = (a - d) / 2
    larger, smaller = jnp.maximum(abs(b), abs(c)), jnp.minimum(abs(b), abs(c)) * sign(b) * sign(c)
    scale = safe(jnp.maximum(abs(p), larger))
    z2 = p / scale * p + larger / scale * smaller
    is_real = z2 >= 4 * eps
    root = p + sign(p) * jnp.sqrt(scale) * jnp.sqrt(jnp.where(is_real, z2, 0))
    tau = safe(hypot(c, root))
    real = (root / tau, c / tau, d + root, d - larger / safe(root) * smaller, b - c, 0 * c)
    # Complex or nearly equal eigenvalues: make the diagonal elements equal.
    sigma = b + c
    tau = safe(hypot(sigma, a - d))
    cs = jnp.sqrt((1 + abs(sigma) / tau) / 2)
    sn = -(p / (tau * cs)) * sign(sigma)
    aa, bb = a * cs + b * sn, -a * sn + b * cs
    cc, dd = c * cs + d * sn, -c * sn + d * cs
    a1, b1, c1, d1 = aa * cs + cc * sn, bb * cs + dd * sn, -aa * sn + cc * cs, -bb * sn + dd * cs
    middle = (a1 + d1) / 2
    # With rounding, the eigenvalues can still turn out to be real.
    turns_real = (b1 != 0) & (c1 != 0) & (sign(b1) == sign(c1))
    root_b, root_c = jnp.sqrt(abs(b1)), jnp.sqrt(abs(c1))
    half_gap = root_b * root_c * sign(c1)
    tau = 1 / jnp.sqrt(safe(abs(b1 + c1)))
    cs1, sn1 = root_b * tau, root_c * tau
    rotation = cs * cs1 - sn * sn1, cs * sn1 + sn * cs1
    real_after_all = (*rotation, middle + half_gap, middle - half_gap, b1 - c1, 0 * c1)
    swapped_after_all = (-sn, cs, middle, middle, -c1, 0 * c1)
    one, zero = jnp.ones((), t.dtype), jnp.zeros((), t.dtype)
    as_it_is, swapped = (one, zero, a, d, b, c), (zero, one, d, a, -c, zero)
    is_standard = (c == 0) | ((a == d) & (b != 0) & (sign(b) != sign(c)))
    choices = [
        (is_standard, as_it_is),
        (b == 0, swapped),
        (is_real, real),
        (turns_real, real_after_all),
        ((b1 == 0) & (c1 != 0), swapped_after_all),
    ]
    chosen = [cs, sn, middle, middle, b1, c1]
    for condition, values in reversed(choices):
        chosen = [jnp.where(condition, x, y) for x, y in zip(values, chosen, strict=True)]
    cs, sn, a, d, b, c = chosen
    t = _rotate_columns(_rotate_columns(t.T, k, cs, sn).T, k, cs, sn)
    z = _rotate_columns(z, k, cs, sn)
    positions = masked.positions(t.shape[0])
    for i, j, value in ((0, 0, a), (0, 1, b), (1, 0, c), (1, 1, d)):
        t = jnp.where((positions[:, None] == k + i) & (positions == k + j), value, t)
    return t, z


def _rotate_columns(x, k, cs, sn):
    """Replaces columns k and k + 1, p and q, by cs p + sn q and cs q - conj(sn) p."""
    p, q = masked.column(x, k), masked.column(x, k + 1)
    x = masked.set_column(x, k, cs * p + sn * q)
    return masked.set_column(x, k + 1, cs * q - jnp.conj(sn) * p)


def eig(a: Array, *, left: bool, right: bool) -> list[Array]:
    """The eigenvalues of a matrix and, if requested, its left and right eigenvectors.

    Each vector has Euclidean norm 1, and its largest component is real. For a real matrix, complex
    eigenvalues and vectors come in exactly conjugate pairs, the one with imag(w) > 0 first.
    """
    t, z = schur(a, compute_vectors=left or right)
    is_real = not jnp.issubdtype(a.dtype, jnp.complexfloating)
    w, t, z = _triangular(t, z) if is_real else (masked.diagonal(t), t, z)
    results = [w]
    if left:
        vectors = _triangular_vectors(t.conj().T[::-1, ::-1], w.conj()[::-1])[::-1, ::-1]
        results.append(normalized(matmul(z, vectors), w if is_real else None))
    if right:
        results.append(normalized(matmul(z, _triangular_vectors(t, w)), w if is_real else None))
    return results


def _triangular(t, z):
    """The eigenvalues of a real Schur form, the complex Schur form and its vectors."""
    n = t.shape[0]
    dtype = jnp.result_type(t.dtype, jnp.complex64)
    if avals.is_at_most(n, 1):
        return masked.diagonal(t).astype(dtype), t.astype(dtype), z.astype(dtype)
    above, below = masked.diagonal(t, 1), masked.diagonal(t, -1)
    gap = jnp.sqrt(abs(above)) * jnp.sqrt(abs(below))
    none = jnp.zeros(1, gap.dtype)
    first, second = jnp.concatenate([gap, none]), jnp.concatenate([none, gap])
    is_nan = jnp.isnan(first) | jnp.isnan(second)
    imag = jnp.where(first > 0, first, jnp.where(second > 0, -second, 0))
    imag = jnp.where(is_nan, jnp.nan, imag)
    w = lax.complex(masked.diagonal(t), imag)

    def split(k, state):
        t, z = state
        b, c = masked.element(above, k), masked.element(below, k)
        # (sqrt(|b|), i sign(b) sqrt(|c|)), scaled, is an eigenvector of [[a, b], [c, a]].
        p, q = jnp.sqrt(abs(b)), jnp.sqrt(abs(c)) * jnp.where(b < 0, -1, 1)
        is_pair = c != 0
        length = jnp.where(is_pair, hypot(p, q), 1)
        cs = jnp.where(is_pair, p / length, 1).astype(dtype)
        sn = jnp.where(is_pair, lax.complex(0 * q, q / length), 0)
        t = _rotate_columns(t.conj().T, k, cs, sn).conj().T
        return _rotate_columns(t, k, cs, sn), _rotate_columns(z, k, cs, sn)

    t, z = lax.fori_loop(0, n - 1, split, (t.astype(dtype), z.astype(dtype)))
    columns = masked.positions(n)
    t = jnp.where(masked.on_diagonal(n), w, t)
    return w, jnp.where(columns[:, None] > columns, 0, t), z


def _triangular_vectors(t, w):
    """The eigenvectors of an upper triangular matrix with the diagonal w, as columns.

    Back substitution computes all of them at once, from the last row to the first. A column that
    grows is scaled down. Differences of eigenvalues that are too small are replaced by a small
    number, as in LAPACK's xTREVC.
    """
    n = t.shape[0]
    if n == 0:
        return t
    columns = masked.positions(n)
    info = jnp.finfo(t.dtype)
    smallest = jnp.maximum(info.eps * jnp.max(size(t)), info.tiny / info.eps)

    def solve_row(i, x):
        k = n - 1 - i
        gap = masked.element(w, k) - w
        gap = jnp.where(size(gap) < smallest, smallest.astype(gap.dtype), gap)
        values = -matmul(masked.row(t, k), x) / gap
        values = jnp.where(columns > k, values, jnp.where(columns == k, 1, 0))
        x = jnp.where(columns[:, None] == k, values, x)
        return x / jnp.maximum(size(values), 1)

    return lax.fori_loop(0, n, solve_row, jnp.zeros_like(t))


def normalized(v: Array, w: Array | None) -> Array:
    """The columns of a complex v scaled to norm 1, with a real largest component.

    If the vectors are those of a real matrix, w are the eigenvalues, else None.
    """
    n = v.shape[0]
    if n == 0:
        return v
    largest = jnp.max(size(v), axis=0)
    v = v / jnp.where(largest > 0, largest, 1)
    is_pivot = masked.positions(n)[:, None] == jnp.argmax(square(v), axis=0)
    pivot = jnp.sum(jnp.where(is_pivot, v, 0), axis=0)
    v = v * (pivot.conj() / abs(pivot))
    is_real = is_pivot if w is None else is_pivot | (jnp.imag(w) == 0)
    real, imag = jnp.real(v), jnp.where(is_real, 0, jnp.imag(v))
    v = lax.complex(real, imag) / jnp.sqrt(jnp.sum(real * real + imag * imag, axis=0))
    if w is None:
        return v
    before = jnp.concatenate([v[:, :1], v[:, :-1]], axis=1)
    return jnp.where(jnp.imag(w) < 0, before.conj(), v)
