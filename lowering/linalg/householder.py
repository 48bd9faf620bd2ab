"""Householder reflectors, and the matrix reductions built from them, as in LAPACK.

A reflector is H = I - tau v v^H with v[k] = 1 and v[i] = 0 for i < k. A packed matrix stores the
vectors v of its reflectors below the diagonal (or subdiagonal) of the result; the factors tau are
a vector of their own. References: G. Golub and C. Van Loan, Matrix Computations, 4th edition,
sections 5.1, 5.2, 7.4 and 8.3. Packing and signs are those of LAPACK's xGEQRF, xGEQP3, xORGQR,
xGEHRD and xSYTRD. All reductions are backward stable: the result is exact for a matrix that differs
from the given one by a small multiple of n eps in norm.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from lowering import avals, jax_compat
from lowering.linalg import masked
from lowering.linalg.scaling import hypot


def norm(x: Array) -> Array:
    """The Euclidean norm of a vector; the squares neither overflow nor underflow."""
    largest = jnp.max(abs(x), initial=0)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1)
    # The absolute value comes first, as JAX would divide a complex x by a complex `scale`.
    scaled = abs(x) / scale
    return scale * jnp.sqrt(jnp.sum(scaled * scaled))


def reflector(x: Array, k: Array) -> tuple[Array, Array, Array]:
    """v, tau and beta with H^H x = beta e_k, where beta is real and x[:k] is ignored.

    If x already is beta e_k, tau is zero.
    """
    positions = masked.positions(x.shape[0])
    alpha = masked.element(x, k)
    tail = jnp.where(positions > k, x, 0)
    tail_norm = norm(tail)
    done = (tail_norm == 0) & (jnp.imag(alpha) == 0)
    length = hypot(abs(alpha), tail_norm)
    beta = jnp.where(done, jnp.real(alpha), jnp.where(jnp.real(alpha) < 0, length, -length))
    beta = beta.astype(x.dtype)
    tau = jnp.where(done, 0, (beta - alpha) / jnp.where(done, 1, beta))
    tail = tail / jnp.where(done, 1, alpha - beta)
    return jnp.where(positions == k, 1, tail).astype(x.dtype), tau, beta


def apply_left(a: Array, v: Array, tau: Array) -> Array:
    """H a, where H is the reflector of v and tau."""
    return a - (tau * v)[:, None] * matmul(v.conj(), a)[None, :]


def apply_right(a: Array, v: Array, tau: Array) -> Array:
    """a H, where H is the reflector of v and tau."""
    return a - matmul(a, v)[:, None] * (tau * v.conj())[None, :]


def matmul(x: Array, y: Array) -> Array:
    """The product of matrices or vectors, computed in full precision."""
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)


def with_real_diagonal(a: Array) -> Array:
    """A square matrix without the imaginary parts of its diagonal."""
    return jnp.where(masked.on_diagonal(a.shape[0]), jnp.real(a).astype(a.dtype), a)


def _reflect_column(a, k, row):
    """v and tau of the reflector that clears column k below `row`; the packed column."""
    rows, column = masked.positions(a.shape[0]), masked.column(a, k)
    v, tau, beta = reflector(column, row)
    return v, tau, jnp.where(rows < row, column, jnp.where(rows == row, beta, v))


def _factor_column(k, state):
    """Does one step of the QR decomposition: reflects column k and all columns right of it."""
    a, taus = state
    v, tau, packed = _reflect_column(a, k, k)
    a = jnp.where(masked.positions(a.shape[1]) > k, apply_left(a, v, tau.conj()), a)
    return masked.set_column(a, k, packed), masked.set_element(taus, k, tau)


def geqrf(a: Array) -> tuple[Array, Array]:
    """The QR decomposition of an m x n matrix: the packed matrix with R, and tau."""
    steps = jax_compat.min_dim(*a.shape)
    return lax.fori_loop(0, steps, _factor_column, (a, jnp.zeros(steps, a.dtype)))


def geqp3(a: Array, jpvt: Array) -> tuple[Array, Array, Array]:
    """The QR decomposition with pivoting of columns: packed, the permutation, and tau.

    The columns are permuted so that the diagonal of R does not increase. Columns with a nonzero
    entry in `jpvt` are moved to the front and stay there. The permutation counts from one.
    """
    m, n = a.shape
    steps = jax_compat.min_dim(m, n)
    rows, columns = masked.positions(m), masked.positions(n)
    num_fixed = jnp.sum(jpvt != 0, dtype=jnp.int32)

    def bring_forward(j, state):
        a, order, place = state
        to = jnp.where(masked.element(jpvt, j) != 0, place, j)
        a, order = masked.swap_columns(a, j, to), masked.swap_elements(order, j, to)
        return a, order, place + (masked.element(jpvt, j) != 0).astype(jnp.int32)

    def step(k, state):
        a, order, taus = state
        norms = jax.vmap(norm, in_axes=1)(jnp.where((rows >= k)[:, None], a, 0))
        longest = jnp.argmax(jnp.where(columns < k, -1, norms)).astype(jnp.int32)
        pivot = jnp.where(k < num_fixed, k, longest)
        a, taus = _factor_column(k, (masked.swap_columns(a, k, pivot), taus))
        return a, masked.swap_elements(order, k, pivot), taus

    order = lax.iota(jpvt.dtype, n)
    a, order, _ = lax.fori_loop(0, n, bring_forward, (a, order, jnp.zeros((), jnp.int32)))
    a, order, taus = lax.fori_loop(0, steps, step, (a, order, jnp.zeros(steps, a.dtype)))
    return a, order + 1, taus


def _stored_vector(a, k):
    """The vector v of the reflector that column k stores below the diagonal."""
    positions = masked.positions(a.shape[0])
    column = masked.column(a, k)
    return jnp.where(positions < k, 0, jnp.where(positions == k, 1, column)).astype(a.dtype)


def product(a: Array, taus: Array) -> Array:
    """The product of the reflectors of `a`: as many of its first columns as `a` has."""
    m, n = a.shape
    return multiply(a, taus, jnp.eye(m, n, dtype=a.dtype), left=True, transpose=False)


def multiply(a: Array, taus: Array, c: Array, *, left: bool, transpose: bool) -> Array:
    """Q c, Q^H c, c Q or c Q^H, where Q is the product of the reflectors of `a`."""
    steps = taus.shape[0]
    taus = taus.conj() if transpose else taus
    apply = apply_left if left else apply_right

    def step(i, c):
        k = steps - 1 - i if left != transpose else i
        return apply(c, _stored_vector(a, k), masked.element(taus, k))

    return lax.fori_loop(0, steps, step, c)


def hessenberg(a: Array) -> tuple[Array, Array]:
    """Reduces `a` to a similar Hessenberg matrix; returns it packed, and tau."""
    n = a.shape[0]
    if avals.is_at_most(n, 1):
        return a, jnp.zeros(max(n - 1, 0), a.dtype)

    def step(k, state):
        a, taus = state
        v, tau, packed = _reflect_column(a, k, k + 1)
        a = apply_right(a, v, tau)
        a = jnp.where(masked.positions(n) > k, apply_left(a, v, tau.conj()), a)
        return masked.set_column(a, k, packed), masked.set_element(taus, k, tau)

    return lax.fori_loop(0, n - 1, step, (a, jnp.zeros(n - 1, a.dtype)))


def tridiagonal(a: Array, *, lower: bool) -> tuple[Array, Array, Array, Array]:
    """Reduces a Hermitian matrix to a similar real tridiagonal one.

    Returns it packed, its diagonal, its off-diagonal, and tau. Only one triangle is read, and only
    that is packed.
    """
    if not lower:
        # With rows and columns reversed, the upper triangle becomes the lower one.
        a, d, e, taus = tridiagonal(lax.rev(a, (0, 1)), lower=True)
        return lax.rev(a, (0, 1)), lax.rev(d, (0,)), lax.rev(e, (0,)), lax.rev(taus, (0,))
    n = a.shape[0]
    positions = masked.positions(n)
    below = positions[:, None] >= positions[None, :]
    full = with_real_diagonal(jnp.where(below, a, a.conj().T))

    def step(k, state):
        a, taus = state
        v, tau, packed = _reflect_column(a, k, k + 1)
        x = jnp.where(positions > k, tau * matmul(a, v), 0)
        w = x - tau * matmul(x.conj(), v) / 2 * v
        update = v[:, None] * w.conj()[None, :]
        a = a - update - update.conj().T
        return masked.set_column(a, k, packed), masked.set_element(taus, k, tau)

    taus = jnp.zeros(n - 1, a.dtype)
    reduced, taus = (full, taus) if n == 1 else lax.fori_loop(0, n - 1, step, (full, taus))
    reduced = with_real_diagonal(reduced)
    d, e = jnp.real(masked.diagonal(reduced)), jnp.real(masked.diagonal(reduced, -1))
    return jnp.where(below, reduced, a), d, e, taus
