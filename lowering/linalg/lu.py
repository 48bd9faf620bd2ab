"""LU decomposition with partial pivoting."""

import jax.numpy as jnp
from jax import Array, lax

from lowering import avals, jax_compat
from lowering.linalg import masked
from lowering.linalg.householder import matmul
from lowering.linalg.scaling import size

# The number of columns that are eliminated one by one before the rest of the matrix is updated.
_PANEL = 64


def lu(a: Array) -> tuple[Array, Array, Array]:
    """L and U of an m x n matrix in one matrix, the pivots, and the permutation of rows.

    The algorithm is right-looking and works on panels of columns: G. Golub and C. Van Loan, Matrix
    Computations, 4th edition, sections 3.4 and 3.6. As in LAPACK, the pivot of a complex column is
    the element with the largest |re| + |im|, the first one if several are equal. A column of zeros
    is left as it is. Pivot i is the row that is swapped with row i at step i.
    """
    m, n = a.shape
    is_empty = m == 0 or n == 0
    if not is_empty and not avals.is_static((m, n)):
        return _panel(a)
    steps = 0 if is_empty else min(m, n)
    order = lax.iota(jnp.int32, m)
    pivots = []
    for start in range(0, steps, _PANEL):
        stop = min(start + _PANEL, steps)
        panel, panel_pivots, panel_order = _panel(a[start:, start:stop])
        rows = jnp.take(a[start:], panel_order, axis=0)
        upper = rows[: stop - start, stop:]
        if stop < n:
            upper = lax.linalg.triangular_solve(
                panel[: stop - start], upper, left_side=True, lower=True, unit_diagonal=True
            )
        rest = rows[stop - start :, stop:] - matmul(panel[stop - start :], upper)
        right = jnp.concatenate([upper, rest], axis=0)
        rows = jnp.concatenate([rows[:, :start], panel, right], axis=1)
        a = jnp.concatenate([a[:start], rows], axis=0)
        order = jnp.concatenate([order[:start], jnp.take(order[start:], panel_order)])
        pivots.append(panel_pivots + start)
    return a, jnp.concatenate(pivots) if pivots else jnp.zeros(0, jnp.int32), order


def _panel(a: Array) -> tuple[Array, Array, Array]:
    """The same as `lu`, eliminating one column at a time."""
    m, n = a.shape
    rows, columns = masked.positions(m), masked.positions(n)

    def eliminate(k, state):
        a, pivots, order = state
        column = masked.column(a, k)
        pivot = jnp.argmax(jnp.where(rows < k, -1, size(column))).astype(jnp.int32)
        a, order = masked.swap_rows(a, k, pivot), masked.swap_elements(order, k, pivot)
        column, row = masked.column(a, k), masked.row(a, k)
        divisor = masked.element(row, k)
        column = jnp.where(divisor == 0, column, column / divisor)
        below = (rows > k)[:, None]
        update = column[:, None] * jnp.where(columns > k, row, 0)
        a = jnp.where(below, a - update, a)
        a = jnp.where(below & (columns == k), column[:, None], a)
        return a, masked.set_element(pivots, k, pivot), order

    steps = jax_compat.min_dim(m, n)
    state = (a, jnp.zeros(steps, jnp.int32), lax.iota(jnp.int32, m))
    return lax.fori_loop(0, steps, eliminate, state)


def permutation(pivots: Array, *, permutation_size: int) -> Array:
    """The order of the rows after swapping row i with row pivots[i], for each i in turn."""

    def swap(i, order):
        return masked.swap_elements(order, i, masked.element(pivots, i))

    order = lax.iota(jnp.int32, permutation_size)
    return lax.fori_loop(0, pivots.shape[0], swap, order)


def pivots(permutation: Array) -> Array:
    """The swaps that result in a permutation of n rows; the inverse of `permutation`.

    Step k moves the original row p = permutation[k] to position k. If p >= k, that row is still at
    position p. If p < k, step p has swapped it with row permutation[p], so it is where that row
    was; and where that was, the same rule says.
    """
    steps = lax.iota(jnp.int32, permutation.shape[0])

    def follow(position):
        return jnp.where(position < steps, jnp.take(permutation, position, mode="clip"), position)

    return lax.while_loop(lambda position: jnp.any(position < steps), follow, permutation)
