"""Primitives that select one element of each window: the derivatives of pooling."""

import itertools
import math
from typing import Any

import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals
from lowering.arrays import computations
from lowering.arrays.limits import highest, lowest
from lowering.arrays.windows import fold, unravel, windows
from lowering.ops import dtypes, emit
from lowering.registry import decomposition, rule
from lowering.targets import PORTABLE
from lowering.tensors.pooling import padding_of_images


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
    """Padding is selected too: it is infinite, or the last integer of its sign."""
    fill = (lowest if select_prim is lax.ge_p else highest)(operand.dtype)
    config = [(low, high, 0) for low, high in padding]
    padded = lax.pad(operand, jnp.asarray(fill, operand.dtype), config)
    axes = windows(padding=[(0, 0)] * len(padding), **window)
    selected = _selected(padded, select_prim.bind, axes)
    # Windows are not empty and have no padding of their own, so that all positions are valid.
    add_at = _add_at if avals.is_static(padded.shape) else _add_at_symbolic
    sums = add_at(jnp.zeros(padded.shape, source.dtype), selected, source)
    starts = [low for low, _ in padding]
    limits = [low + dim for low, dim in zip(starts, operand.shape, strict=True)]
    return lax.slice(sums, starts, limits)


@rule("select_and_scatter_add", target=PORTABLE, dtypes=dtypes.WIDE_FLOAT)
def select_and_scatter_add_natural(ctx, source, operand, *, select_prim, **window):
    """The gradient of the maxima of images by one op, which other runtimes lack."""
    axes, shape = windows(**window), ctx.in_avals[1].shape
    is_image = len(axes) == 4 and 0 not in source.shape
    is_known = is_image and avals.is_static((*shape, *window["window_dimensions"]))
    padding = padding_of_images(shape, axes) if is_known else None
    # In a window of negative infinity JAX may choose padding, which the op does not know.
    is_op = select_prim is lax.ge_p and padding == "VALID"
    if is_op and not ctx.target.is_consumer:
        rows, columns = axes[1:3]
        attrs: dict[str, Any] = {
            "ksize": (1, rows.size, columns.size, 1),
            "strides": (1, rows.stride, columns.stride, 1),
            "padding": padding,
        }
        # The optimizer makes one op of equal ones.
        return emit("MaxPoolGrad", operand, emit("MaxPool", operand, **attrs), source, **attrs)
    options = {"select_prim": select_prim, **window}
    return ctx.lower(select_and_scatter_add, source, operand, avals=ctx.in_avals, **options)


def _add_at(x, positions, values):
    """`x` with values added at positions in row-major order."""
    sums = _scatter(values.dtype)(
        lax.reshape(x, (math.prod(x.shape),)),
        lax.reshape(positions, (math.prod(values.shape), 1)),
        lax.reshape(values, (math.prod(values.shape),)),
        lax.ScatterDimensionNumbers((), (0,), (0,)),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    return lax.reshape(sums, x.shape)


def _add_at_symbolic(x, positions, values):
    """The same without a reshape, as JAX cannot tell that a product of sizes is not negative."""
    index = []
    for dim in reversed(x.shape):
        size = jnp.asarray(dim, np.int32)
        index.append(lax.rem(positions, size))
        positions = lax.div(positions, size)
    axes = tuple(range(x.ndim))
    return _scatter(values.dtype)(
        x,
        jnp.stack(index[::-1], -1),
        values,
        lax.ScatterDimensionNumbers((), axes, axes),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _scatter(dtype):
    return lax.scatter_max if dtype == np.bool_ else lax.scatter_add


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
    **params,
):
    """Any functions; if several windows select one element, they do so in row-major order."""
    axes = windows(padding=padding, **params)
    select = _on_arrays(select_jaxpr, select_consts, operand.ndim)
    combine = _on_arrays(scatter_jaxpr, scatter_consts, operand.ndim)
    selected = _selected(operand, select, axes)
    out = jnp.broadcast_to(init_value, operand.shape)
    positions = _positions(operand.shape)
    sizes = [window.size for window in axes]
    if not avals.is_static(sizes):
        return _scatter_symbolic(combine, selected, source, out, axes)
    # At one offset each window has another element. The later a window is in row-major order, the
    # earlier is the offset at which it has a given element.
    for offsets in itertools.product(*(reversed(range(size)) for size in sizes)):
        config = []
        for offset, window, dim, count in zip(offsets, axes, operand.shape, source.shape):
            low = offset - window.low
            config.append((low, dim - 1 - low - (count - 1) * window.stride, window.stride - 1))
        updates = lax.pad(source, jnp.zeros((), source.dtype), config)
        chosen = lax.pad(selected, jnp.int32(-1), config) == positions
        out = jnp.where(chosen, combine(out, updates), out)
    return out


def _scatter_symbolic(combine, selected, source, out, axes):
    """The same in a loop over the elements of a window, whose size is symbolic.

    What all offsets need is in one array; at each offset it is another block of it.
    """
    positions, sizes = _positions(out.shape), [window.size for window in axes]
    config = []
    for window, dim, count in zip(axes, out.shape, source.shape, strict=True):
        low = window.size - 1 - window.low
        span = (count - 1) * window.stride + 1
        config.append((low, dim + window.size - 1 - low - span, window.stride - 1))
    updates = lax.pad(source, jnp.zeros((), source.dtype), config)
    chosen = lax.pad(selected, jnp.int32(-1), config)

    def step(i, out):
        # The last element of the windows comes first, and is where the block begins at zero.
        starts = unravel(i, sizes)
        block, places = (lax.dynamic_slice(x, starts, out.shape) for x in (updates, chosen))
        return jnp.where(places == positions, combine(out, block), out)

    total = jnp.asarray(math.prod(sizes), np.int32)
    return lax.fori_loop(np.int32(0), total, step, out)


def _on_arrays(jaxpr, consts, rank):
    """A computation on two scalars as an elementwise function of two arrays."""
    if not isinstance(jaxpr, jex_core.ClosedJaxpr):
        jaxpr = jex_core.ClosedJaxpr(jaxpr, consts)
    combine = computations.elementwise(jaxpr, rank)
    return lambda x, y: combine([x], [y])[0]


def _selected(operand, select, axes):
    """The position in the flat operand of the element that each window selects; -1 for none."""

    def choose(reduced, new):
        keep = (reduced[1] >= 0) & select(reduced[0], new[0])
        return [jnp.where(keep, old, other) for old, other in zip(reduced, new, strict=True)]

    inits = [jnp.zeros((), operand.dtype), jnp.int32(-1)]
    return fold([operand, _positions(operand.shape)], inits, choose, axes)[1]


def _positions(shape):
    """The position of each element of an array in row-major order."""
    if avals.is_static(shape):
        return lax.reshape(lax.iota(np.int32, math.prod(shape)), shape)
    # JAX cannot tell that a product of symbolic sizes, the length of one iota, is not negative.
    positions = jnp.zeros(shape, np.int32)
    for axis, dim in enumerate(shape):
        positions *= jnp.asarray(dim, np.int32)
        positions += lax.broadcasted_iota(np.int32, shape, axis)
    return positions
