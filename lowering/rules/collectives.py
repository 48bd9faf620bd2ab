"""Collectives: what the devices of a mesh do together.

Each is a JAX function that is mapped over the axes of the mesh. Most use `_peers`, which costs
nothing once it is mapped: the values of all devices are one array already.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.registry import Trait
from lowering.rules.shard_map import collective

Groups = Sequence[Sequence[int]] | None


def _axes(axis_name: Any) -> tuple[str, ...]:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _gather(x: jax.Array, axis_name: Any) -> jax.Array:
    """The operands of all devices along axes of the mesh, in a new leading dimension."""
    axes = _axes(axis_name)
    for name in reversed(axes):
        x = lax.all_gather(x, name)
    return lax.collapse(x, 0, len(axes)) if axes else x[None]


def _of_this_device(table: Sequence[Any] | np.ndarray, axis_name: Any) -> jax.Array:
    """The entry of a table for this device."""
    index = lax.axis_index(_axes(axis_name))
    return lax.dynamic_index_in_dim(np.asarray(table), index, keepdims=False)


def _peers(x: jax.Array, axis_name: Any, groups: Groups) -> jax.Array:
    """The operands of the devices of this device's group, in a new leading dimension."""
    gathered = _gather(x, axis_name)
    if groups is None:
        return gathered
    group_of = {device: group for group in groups for device in group}
    members = _of_this_device([group_of[i] for i in range(len(group_of))], axis_name)
    return _rows(gathered, members)


def _rank(axis_name: Any, groups: Groups) -> jax.Array:
    """The position of this device in its group."""
    if groups is None:
        return lax.axis_index(_axes(axis_name))
    rank = {device: i for group in groups for i, device in enumerate(group)}
    return _of_this_device([rank[i] for i in range(len(rank))], axis_name)


def _rows(x: jax.Array, rows: jax.Array) -> jax.Array:
    return x.at[rows].get(mode="promise_in_bounds", wrap_negative_indices=False)


def _part(x: jax.Array, axis: int, count: int, index: jax.Array) -> jax.Array:
    """One of `count` equal parts of a dimension."""
    shape = (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :])
    return lax.dynamic_index_in_dim(lax.reshape(x, shape), index, axis, keepdims=False)


collective("axis_index")(lax.axis_index)


def _reduction(named, positional):
    """A reduction over axes of the mesh, or over the dimensions that they become when mapped."""

    def reduce(x, *, axes, axis_index_groups=None):
        if all(isinstance(axis, int) for axis in axes):
            return positional(x, axes)
        if axis_index_groups is None:
            return named(x, axes)
        return positional(_peers(x, axes, axis_index_groups), (0,))

    return reduce


psum = collective(
    "psum",
    "psum_invariant",
    "psum_invariant_start",
    "psum_start",
    "unreduced_psum",
    "unreduced_psum_start",
)(_reduction(lax.psum, lax.reduce_sum))
# NaN if there is one. On the CPU, JAX's result depends on which device has the NaN.
collective("pmax", "unreduced_pmax")(_reduction(lax.pmax, lax.reduce_max))
collective("pmin", "unreduced_pmin")(_reduction(lax.pmin, lax.reduce_min))


@collective(
    "all_gather",
    "all_gather_start",
    "all_gather_invariant",
    "all_gather_reduced",
    "all_gather_reduced_start",
    traits=Trait.SELECTS,
)
def all_gather(x, *, all_gather_dimension, axis_name, tiled, axis_index_groups=None, **_):
    x = jnp.moveaxis(_peers(x, axis_name, axis_index_groups), 0, all_gather_dimension)
    return lax.collapse(x, all_gather_dimension, all_gather_dimension + 2) if tiled else x


@collective(
    "reduce_scatter",
    "reduce_scatter_start",
    "unreduced_reduce_scatter",
    "unreduced_reduce_scatter_start",
)
def reduce_scatter(
    x, *, scatter_dimension, axis_name, axis_size, tiled, axis_index_groups=None, **_
):
    total = psum(x, axes=_axes(axis_name), axis_index_groups=axis_index_groups)
    rank = _rank(axis_name, axis_index_groups)
    part = _part(total, scatter_dimension, axis_size, rank)
    return part if tiled else lax.squeeze(part, (scatter_dimension,))


@collective("all_to_all", "all_to_all_start", traits=Trait.SELECTS)
def all_to_all(x, *, split_axis, concat_axis, axis_name, axis_index_groups, **_):
    peers = _peers(x, axis_name, axis_index_groups)
    rank = _rank(axis_name, axis_index_groups)
    part = jnp.moveaxis(_part(peers, split_axis + 1, peers.shape[0], rank), 0, concat_axis)
    return lax.collapse(part, concat_axis, concat_axis + 2)


@collective("ppermute", "ppermute_start")
def ppermute(x, *, axis_name, perm):
    """A device that nothing is sent to gets zeros."""
    gathered = _gather(x, axis_name)
    sources = np.full(gathered.shape[0], -1)
    for source, destination in perm:
        sources[destination] = source
    received = _rows(gathered, _of_this_device(np.maximum(sources, 0), axis_name))
    if (sources >= 0).all():
        return received
    is_sent = _of_this_device(sources >= 0, axis_name)
    return lax.select(jnp.broadcast_to(is_sent, x.shape), received, jnp.zeros_like(x))


@collective("pbroadcast", "pbroadcast_start")
def pbroadcast(x, *, axis_name, source):
    return _gather(x, axis_name)[source]


@collective("pbroadcast_dynamic")
def pbroadcast_dynamic(x, source, *, axis_name):
    return lax.dynamic_index_in_dim(_gather(x, axis_name), source, keepdims=False)


@collective("ragged_all_to_all")
def ragged_all_to_all(operand, output, starts, sizes, places, _, *, axis_name, axis_index_groups):
    """Each sender says which of its rows it sends (by starts and sizes), and to which places."""
    operands = _peers(operand, axis_name, axis_index_groups)
    count, rank = operands.shape[0], _rank(axis_name, axis_index_groups)
    starts, sizes, places = (
        _part(_peers(x, axis_name, axis_index_groups), 1, count, rank)
        for x in (starts, sizes, places)
    )
    sender = lax.broadcasted_iota(starts.dtype, starts.shape, 0)
    starts, sizes, places, sender = (lax.collapse(x, 0, 2) for x in (starts, sizes, places, sender))
    row = lax.iota(places.dtype, output.shape[0])
    is_sent = (places[:, None] <= row) & (row < (places + sizes)[:, None])
    which = jnp.argmax(is_sent, axis=0)
    received = operands.at[sender[which], starts[which] + row - places[which]].get(mode="clip")
    is_received = jnp.expand_dims(is_sent.any(0), range(1, output.ndim))
    return jnp.where(is_received, received, output)


@collective(
    "all_gather_done",
    "all_to_all_done",
    "pbroadcast_done",
    "ppermute_done",
    "preduced",
    "psum_done",
    "pvary",
    "reduce_scatter_done",
    "reduced_vary_cast",
    "reduced_vary_cast_p",
    "vary_unreduced_cast",
    "vary_unreduced_cast_p",
)
def unchanged(x, **_):
    """The operand is the result that was asked for at the start, or has another type only."""
    return x
