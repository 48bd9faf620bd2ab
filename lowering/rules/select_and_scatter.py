"""Primitives that select one element of each window: the derivatives of pooling."""

import itertools
import math

import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.arrays import computations
from lowering.arrays.windows import Window, fold, windows
from lowering.registry import decomposition


@decomposition("select_and_gather_add")
def select_and_gather_add(tangents, operand, *, select_prim, **window):
    """The tangent at the first largest, or smallest, element of each window."""
    init = jnp.full((), -np.inf if select_prim is lax.ge_p else np.inf, operand.dtype)

    def choose(reduced, new):
        keep = select_prim.bind(reduced[0], new[0])
        return [jnp.where(keep, old, other) for old, other in zip(reduced, new, strict=True)]

    zero = jnp.zeros((), tangents.dtype)
    return fold([operand, tangents], [init, zero], choose, windows(**window))[1]


@decomposition("select_and_scatter_add")
def select_and_scatter_add(source, operand, *, select_prim, padding, **window):
    """Padding takes part in the selection, as infinity or the last integer of its sign."""
    is_max = select_prim is lax.ge_p
    fill = _least(operand.dtype) if is_max else _greatest(operand.dtype)
    config = [(low, high, 0) for low, high in padding]
    padded = lax.pad(operand, jnp.asarray(fill, operand.dtype), config)
    axes = windows(padding=[(0, 0)] * len(padding), **window)
    places = _selected(padded, lambda old, new: select_prim.bind(old, new), axes)
    zeros = jnp.zeros(math.prod(padded.shape), source.dtype)
    flat = (math.prod(source.shape),)
    # No window is empty, and none has padding of its own: each place is inside.
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    scatter = lax.scatter_max if source.dtype == np.bool_ else lax.scatter_add
    sums = scatter(
        zeros,
        lax.reshape(places, (*flat, 1)),
        lax.reshape(source, flat),
        numbers,
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    starts = [low for low, _ in padding]
    limits = [low + dim for low, dim in zip(starts, operand.shape, strict=True)]
    return lax.slice(lax.reshape(sums, padded.shape), starts, limits)


def _least(dtype):
    if dtype == np.bool_:
        return False
    return np.iinfo(dtype).min if jnp.issubdtype(dtype, np.integer) else -np.inf


def _greatest(dtype):
    if dtype == np.bool_:
        return True
    return np.iinfo(dtype).max if jnp.issubdtype(dtype, np.integer) else np.inf


@decomposition("select_and_scatter")
def select_and_scatter(
    operand,
    source,
    init_value,
    *,
    select_jaxpr,
    select_consts,
    scatter_jaxpr,
    scatter_consts,
    padding,
    **window,
):
    """Any functions; windows in row-major order where several select one element."""
    rank = operand.ndim
    axes = windows(padding=padding, **window)
    select = computations.elementwise(_closed(select_jaxpr, select_consts), rank)
    combine = computations.elementwise(_closed(scatter_jaxpr, scatter_consts), rank)
    places = _selected(operand, lambda old, new: select([old], [new])[0], axes)
    out = jnp.broadcast_to(init_value, operand.shape)
    own_places = _places(operand.shape)
    # At one offset each window reaches an element of its own. The later a window is in row-major
    # order, the earlier is the offset at which it reaches a given element.
    for offsets in itertools.product(*(reversed(range(window.size)) for window in axes)):
        placed = [
            (offset - window.low, dim - 1 - (offset - window.low) - (count - 1) * window.stride,
             window.stride - 1)
            for offset, window, dim, count in zip(offsets, axes, operand.shape, source.shape)
        ]  # fmt: skip
        sources = lax.pad(source, jnp.zeros((), source.dtype), placed)
        chosen = lax.pad(places, jnp.asarray(-1, places.dtype), placed) == own_places
        out = jnp.where(chosen, combine([out], [sources])[0], out)
    return out


def _closed(jaxpr, consts):
    is_closed = isinstance(jaxpr, jex_core.ClosedJaxpr)
    return jaxpr if is_closed else jex_core.ClosedJaxpr(jaxpr, consts)


def _selected(operand, select, axes: list[Window]):
    """The place in the flat operand of the element that each window selects; -1 for none."""
    places = _places(operand.shape)

    def choose(reduced, new):
        keep = (reduced[1] >= 0) & select(reduced[0], new[0])
        return [jnp.where(keep, old, other) for old, other in zip(reduced, new, strict=True)]

    inits = [jnp.zeros((), operand.dtype), jnp.asarray(-1, places.dtype)]
    return fold([operand, places], inits, choose, axes)[1]


def _places(shape):
    """Numbers the elements of an array."""
    return lax.reshape(lax.iota(np.int32, math.prod(shape)), shape)
