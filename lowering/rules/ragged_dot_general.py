"""Contractions of groups of different sizes."""

import functools

import jax.numpy as jnp
from jax import lax

from lowering.registry import decomposition


@decomposition("ragged_dot_general")
def ragged_dot_general(
    lhs, rhs, group_sizes, *, ragged_dot_dimension_numbers, precision, preferred_element_type, **_
):
    """Elements that are in none of the groups count as zeros."""
    numbers = ragged_dot_dimension_numbers
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    dot = functools.partial(
        lax.dot_general, precision=precision, preferred_element_type=preferred_element_type
    )

    def shifted(axes):
        return [axis + 1 for axis in axes]

    if ragged in lhs_batch:
        return dot(lhs, rhs, numbers.dot_dimension_numbers)
    if ragged in lhs_contract:
        position = lhs_contract.index(ragged)
        lhs_outer = (*lhs_batch, *lhs_contract[:position])
        rhs_outer = (*rhs_batch, *rhs_contract[:position])
        x = _split(lhs, ragged, lhs_outer, group_sizes)
        y = _split(rhs, rhs_contract[position], rhs_outer, group_sizes)
        batch = ([0, *shifted(lhs_batch)], [0, *shifted(rhs_batch)])
        return dot(x, y, ((shifted(lhs_contract), shifted(rhs_contract)), batch))
    outer = [i for i in range(ragged) if i not in (*lhs_batch, *lhs_contract)]
    x = _split(lhs, ragged, (*lhs_batch, *outer), group_sizes)
    contract = ([*shifted(lhs_contract), 0], [*rhs_contract, *numbers.rhs_group_dimensions])
    return dot(x, rhs, (contract, (shifted(lhs_batch), rhs_batch)))


def _split(x, axis, outer, group_sizes):
    """A copy of `x` for each group of elements along an axis, with zeros outside of the group.

    `group_sizes` is [*outer, groups], or [groups] if sizes are the same along the axes `outer`.
    """
    outer = outer if group_sizes.ndim > 1 else ()
    ends = jnp.cumsum(group_sizes, axis=-1, dtype=group_sizes.dtype)
    starts = ends - group_sizes
    shape = (group_sizes.shape[-1], *x.shape)
    place = lax.broadcasted_iota(group_sizes.dtype, shape, axis + 1)
    starts, ends = (
        lax.broadcast_in_dim(jnp.moveaxis(y, -1, 0), shape, (0, *(i + 1 for i in outer)))
        for y in (starts, ends)
    )
    is_inside = (starts <= place) & (place < ends)
    copies = jnp.broadcast_to(x, shape)
    return lax.select(is_inside, copies, jnp.zeros_like(copies))
