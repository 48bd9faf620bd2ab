"""Solves tridiagonal systems of equations."""

import jax.numpy as jnp
from jax import Array, lax


def solve(dl: Array, d: Array, du: Array, b: Array, *, perturb_singular: bool) -> Array:
    """Solves a tridiagonal system by Gaussian elimination with partial pivoting.

    The algorithm is LAPACK's xGTSV or, if `perturb_singular`, its xLAGTF and xLAGTS. The latter
    compare pivots relative to the size of their rows. They also perturb pivots for which a quotient
    would overflow, by eps times the largest element of U. Both are backward stable. Without
    perturbation the solution is all NaN if a pivot is zero.

    Args:
      dl, d, du: the diagonals, m elements each; the first of dl and the last of du are not read.
      b: m x k right-hand sides.
    """
    m = d.shape[0]
    if m == 0:
        return b
    du = jnp.where(lax.iota(jnp.int32, m) == m - 1, 0, du)

    def eliminate(pending, row):
        d0, u0, b0, scale0 = pending
        l1, d1, u1, b1 = row
        scale1 = abs(l1) + abs(d1) + abs(u1)
        if perturb_singular:
            weight0 = jnp.where(d0 == 0, 0, abs(d0) / scale0)
            keep = (l1 == 0) | (abs(l1) / scale1 <= weight0)
        else:
            keep = abs(l1) <= abs(d0)
        pivot, other = jnp.where(keep, d0, l1), jnp.where(keep, l1, d0)
        factor = jnp.where(other == 0, 0, other / jnp.where(pivot == 0, 1, pivot))
        done = (pivot, jnp.where(keep, u0, d1), jnp.where(keep, 0, u1), jnp.where(keep, b0, b1))
        d0 = jnp.where(keep, d1 - factor * u0, u0 - factor * d1)
        u0 = jnp.where(keep, u1, -factor * u1)
        b0 = jnp.where(keep, b1 - factor * b0, b0 - factor * b1)
        return (d0, u0, b0, jnp.where(keep, scale1, scale0)), done

    first = (d[0], du[0], b[0], abs(d[0]) + abs(du[0]))
    last, rows = lax.scan(eliminate, first, (dl[1:], d[1:], du[1:], b[1:]))
    last = (last[0], jnp.zeros_like(last[0]), jnp.zeros_like(last[0]), last[2])
    rows = tuple(jnp.concatenate([x, y[None]]) for x, y in zip(rows, last, strict=True))
    pivots = rows[0]
    largest = jnp.max(jnp.stack([jnp.max(abs(x)) for x in rows[:3]]))

    def substitute(later, row):
        x1, x2 = later
        pivot, u1, u2, b0 = row
        rest = b0 - u1 * x1 - u2 * x2
        if perturb_singular:
            pivot = _perturbed(pivot, jnp.max(abs(rest), initial=0), largest)
        x0 = rest / pivot
        return (x0, x1), x0

    zeros = jnp.zeros_like(b[0])
    _, x = lax.scan(substitute, (zeros, zeros), rows, reverse=True)
    return x if perturb_singular else jnp.where(jnp.any(pivots == 0), jnp.nan, x)


def _perturbed(pivot: Array, dividend: Array, largest: Array) -> Array:
    """A pivot by which `dividend` can be divided without overflow.

    A pivot that is too small is moved away from zero, by a tolerance that is doubled often enough.
    """
    info = jnp.finfo(largest.dtype)
    tolerance = jnp.maximum(info.eps * largest, info.tiny)
    size = abs(pivot)
    needed = jnp.maximum(dividend, 1) * info.tiny
    doublings = jnp.maximum(jnp.ceil(jnp.log2(needed / tolerance + 1)), 1)
    move = jnp.where(jnp.signbit(jnp.real(pivot)), -1, 1) * tolerance * (jnp.exp2(doublings) - 1)
    is_small = (size < 1) & ((size < info.tiny) | (dividend * info.tiny > size))
    return jnp.where(is_small, pivot + move.astype(pivot.dtype), pivot)
