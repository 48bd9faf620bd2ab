"""Cholesky decompositions and solutions of triangular systems, a column or a row after the other.

For runtimes that have no kernels for these (G. H. Golub and C. F. Van Loan, Matrix Computations,
4th edition, 3.1 and 4.2).
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from lowering.linalg import masked
from lowering.linalg.householder import matmul


def cholesky(a: Array) -> Array:
    """The lower triangular factor of a positive definite matrix; its lower triangle is read."""
    n = a.shape[0]

    def add_column(k, factor):
        rest = masked.column(a, k) - matmul(factor, jnp.conj(masked.row(factor, k))[:, None])[:, 0]
        pivot = lax.sqrt(jnp.real(masked.element(rest, k)))
        below = jnp.where(masked.positions(n) > k, _scaled(rest, pivot), jnp.zeros((), a.dtype))
        return masked.set_column(factor, k, masked.set_element(below, k, pivot.astype(a.dtype)))

    return lax.fori_loop(np.int32(0), masked.count(n), add_column, jnp.zeros_like(a))


def _scaled(x, divisor):
    """The quotient of numbers and a real one, of complex numbers part by part."""
    if not jnp.iscomplexobj(x):
        return x / divisor
    return lax.complex(lax.real(x) / divisor, lax.imag(x) / divisor)


def solve(
    a: Array,
    b: Array,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Array:
    """The solution of a system with a triangular matrix; parameters as those of the primitive."""
    if conjugate_a:
        a = jnp.conj(a)
    if not left_side:
        # X op(A) = B is op(A)^T X^T = B^T.
        return solve(
            a,
            b.T,
            left_side=True,
            lower=lower,
            transpose_a=not transpose_a,
            conjugate_a=False,
            unit_diagonal=unit_diagonal,
        ).T
    if transpose_a:
        a, lower = a.T, not lower
    n = a.shape[0]
    a = jnp.tril(a) if lower else jnp.triu(a)

    def add_row(step, x):
        k = step if lower else masked.count(n - 1) - step
        known = masked.row(a, k)
        pivot = jnp.ones((), a.dtype) if unit_diagonal else masked.element(known, k)
        others = jnp.where(masked.positions(n) == k, jnp.zeros((), a.dtype), known)
        rest = masked.row(b, k) - matmul(others[None], x)[0]
        return jnp.where((masked.positions(n) == k)[:, None], (rest / pivot)[None], x)

    return lax.fori_loop(np.int32(0), masked.count(n), add_row, jnp.zeros_like(b))
