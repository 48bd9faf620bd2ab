"""Reads and writes elements, rows and columns at positions known only when the program runs.

Masks do this. Dynamic slices would become gathers and scatters under `vmap`, which cost more than a
pass over the matrix. The loops that use this module make such passes anyway.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def positions(size: int) -> Array:
    """The positions along a dimension: 0 to size - 1."""
    return lax.iota(jnp.int32, size)


def count(size: Any) -> Any:
    """A dimension, which may be symbolic, as int32."""
    return np.int32(size) if isinstance(size, int) else jnp.asarray(size, jnp.int32)


def element(x: Array, i: Array) -> Array:
    """x[i] of a vector."""
    return jnp.sum(jnp.where(positions(x.shape[0]) == i, x, 0), dtype=x.dtype)


def set_element(x: Array, i: Array, value: Array) -> Array:
    """The vector x with `value` at position i."""
    return jnp.where(positions(x.shape[0]) == i, value, x)


def row(x: Array, i: Array) -> Array:
    """x[i] of a matrix."""
    return jnp.sum(jnp.where(positions(x.shape[0])[:, None] == i, x, 0), axis=0, dtype=x.dtype)


def column(x: Array, i: Array) -> Array:
    """x[:, i] of a matrix."""
    return jnp.sum(jnp.where(positions(x.shape[1]) == i, x, 0), axis=1, dtype=x.dtype)


def set_column(x: Array, i: Array, values: Array) -> Array:
    """The matrix x with `values` as column i."""
    return jnp.where(positions(x.shape[1]) == i, values[:, None], x)


def block(x: Array, k: Array) -> tuple[Array, Array, Array, Array]:
    """x[k, k], x[k, k + 1], x[k + 1, k] and x[k + 1, k + 1] of a matrix."""
    first, second = row(x, k), row(x, k + 1)
    return element(first, k), element(first, k + 1), element(second, k), element(second, k + 1)


def resized(x: Array, *shape: int) -> Array:
    """x with zeros after the end of its dimensions, or cropped there, to a shape."""
    config = [(0, new - old, 0) for new, old in zip(shape, x.shape, strict=True)]
    return lax.pad(x, jnp.zeros((), x.dtype), config)


def swap_elements(x: Array, i: Array, j: Array) -> Array:
    """The vector x with elements i and j swapped."""
    return set_element(set_element(x, i, element(x, j)), j, element(x, i))


def swap_rows(x: Array, i: Array, j: Array) -> Array:
    """The matrix x with rows i and j swapped."""
    return swap_columns(x.T, i, j).T


def swap_columns(x: Array, i: Array, j: Array) -> Array:
    """The matrix x with columns i and j swapped."""
    return set_column(set_column(x, i, column(x, j)), j, column(x, i))


def on_diagonal(n: int, offset: int = 0) -> Array:
    """The mask of a diagonal of an n x n matrix: the main one or `offset` to its right."""
    return positions(n)[:, None] + offset == positions(n)


def diagonal(x: Array, offset: int = 0) -> Array:
    """The main diagonal of a square matrix, or the one `offset` to its right."""
    n = x.shape[0]
    values = jnp.sum(jnp.where(on_diagonal(n, offset), x, 0), axis=1, dtype=x.dtype)
    return values[-offset:] if offset < 0 else values[: n - offset]
