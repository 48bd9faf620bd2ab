"""Computations on scalars (of `reduce`, `reduce_window`, `scatter`), applied to whole arrays.

The functions are for decompositions: they take JAX arrays, whose dimensions may be symbolic.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals
from lowering.registry import Trait, has_trait

Arrays = Sequence[jax.Array]
# Combines two sequences of as many arrays elementwise.
Combine = Callable[[Arrays, Arrays], Arrays]

# The size of the blocks of a scan. Larger blocks take more steps, and smaller ones more levels.
_BLOCK = 32


def monoid(computation: jex_core.ClosedJaxpr) -> str | None:
    """The name of the only primitive of a computation on two scalars, such as "add".

    None if the computation is anything else than one commutative, associative primitive.
    """
    if len(computation.eqns) != 1 or len(computation.invars) != 2:
        return None
    (eqn,) = computation.eqns
    is_all = eqn.outvars == computation.outvars and (
        list(eqn.invars) in (computation.invars, computation.invars[::-1])
    )
    name = eqn.primitive.name
    return name if is_all and has_trait(name, Trait.MONOID) else None


def elementwise(computation: jex_core.ClosedJaxpr, rank: int) -> Combine:
    """A computation on scalars as a function of two sequences of arrays of a rank.

    `computation` takes the scalars of the first sequence, then those of the second.
    """
    fun = jex_core.jaxpr_as_fun(computation)
    for _ in range(rank):
        fun = jax.vmap(fun)
    return lambda x, y: fun(*x, *y)


def tree_reduce(
    combine: Callable[[int], Combine], operands: Arrays, inits: Sequence[Any], axes: Sequence[int]
) -> list[jax.Array]:
    """Reduces `axes` of arrays of one shape by combining neighbours, then their results, and so on.

    That takes a logarithmic number of elementwise steps. Elements stay in row-major order, so the
    computation has to be associative, but not commutative. The scalars `inits` come first, unless
    there is a single element: XLA takes it as it is, as it may assume that `inits` are neutral.
    `combine` gets the rank of arrays, and makes the function that combines them elementwise.
    """
    shape = operands[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    kept_shape = [shape[axis] for axis in kept]
    sizes = [shape[axis] for axis in axes]
    if not avals.is_static(sizes):
        order = [*sorted(axes), *kept]
        merged = (math.prod(sizes), *kept_shape)
        flat = [lax.reshape(lax.transpose(x, order), merged) for x in operands]
        return _reduce_symbolic(combine(len(kept) + 1), flat, inits)
    if all(size == 1 for size in sizes):
        return [lax.squeeze(x, axes) for x in operands]
    inits = [jnp.broadcast_to(init, kept_shape) for init in inits]
    if 0 in sizes:
        return inits
    results = list(operands)
    for axis in sorted(axes, reverse=True):
        results = _reduce_axis(combine(results[0].ndim), results, axis)
    return list(combine(len(kept))(inits, results))


def _reduce_axis(combine: Combine, operands: Arrays, axis: int) -> list[jax.Array]:
    """Reduces an axis of known, positive size."""
    while (size := operands[0].shape[axis]) > 1:
        even = [lax.slice_in_dim(x, 0, size - size % 2, 2, axis) for x in operands]
        odd = [lax.slice_in_dim(x, 1, size, 2, axis) for x in operands]
        combined = combine(even, odd)
        if size % 2:
            last = [lax.slice_in_dim(x, size - 1, size, axis=axis) for x in operands]
            combined = [lax.concatenate(pair, axis) for pair in zip(combined, last)]
        operands = list(combined)
    return [lax.squeeze(x, [axis]) for x in operands]


def _reduce_symbolic(combine: Combine, operands: Arrays, inits: Sequence[Any]) -> list[jax.Array]:
    """Reduces axis 0, whose size is symbolic and may be zero; see `tree_reduce`."""
    with_init = [
        lax.concatenate([jnp.broadcast_to(init, (1, *x.shape[1:])), x], 0)
        for init, x in zip(inits, operands)
    ]
    results = _suffix_scan_symbolic(combine, with_init)
    is_single = jnp.asarray(operands[0].shape[0], np.int64) == 1
    start = is_single.astype(np.int32)
    return [lax.dynamic_index_in_dim(x, start, keepdims=False) for x in results]


def _suffix_scan_symbolic(combine: Combine, operands: Arrays) -> list[jax.Array]:
    """The reductions of all suffixes along axis 0.

    Each step combines every element with one further on, twice as far as in the step before (Hillis
    and Steele, "Data parallel algorithms", 1986).
    """
    size = operands[0].shape[0]
    exists = lax.concatenate([jnp.ones(size, bool), jnp.zeros(size, bool)], 0)

    def window(x, start):
        return lax.dynamic_slice_in_dim(x, start, size, allow_negative_indices=False)

    def step(carry):
        distance, *xs = carry
        combined = combine(xs, [window(lax.concatenate([x, x], 0), distance) for x in xs])
        is_inside = window(exists, distance)
        masks = [lax.broadcast_in_dim(is_inside, x.shape, (0,)) for x in xs]
        return [distance * np.int32(2), *map(lax.select, masks, combined, xs)]

    def goes_on(carry):
        return lax.dynamic_index_in_dim(
            exists, carry[0], keepdims=False, allow_negative_indices=False
        )

    return list(lax.while_loop(goes_on, step, [jnp.int32(1), *operands])[1:])


def scan(
    combine: Callable[..., jax.Array], x: jax.Array, identity: Any, axis: int, reverse: bool
) -> jax.Array:
    """The reductions of all prefixes along an axis, or of all suffixes if `reverse`.

    First all blocks are scanned at once, then the totals of the blocks. Each element is then
    combined with the total of the blocks before its own. `combine` takes two arrays, is elementwise
    and associative, and `identity` is neutral in it.
    """
    size = x.shape[axis]
    if not isinstance(size, int):
        return _scan_symbolic(combine, x, axis, reverse)
    if size <= _BLOCK:
        return _scan_block(combine, x, identity, axis, reverse)
    blocks = -(-size // _BLOCK)
    padded = _shift(x, identity, axis, 0, blocks * _BLOCK - size)
    shape = x.shape
    split = lax.reshape(padded, (*shape[:axis], blocks, _BLOCK, *shape[axis + 1 :]))
    # The axis within blocks comes first, so that shifts along it move whole rows.
    order = [axis + 1, *(a for a in range(split.ndim) if a != axis + 1)]
    within = _scan_block(combine, lax.transpose(split, order), identity, 0, reverse)
    totals = lax.index_in_dim(within, 0 if reverse else _BLOCK - 1, 0, keepdims=False)
    scanned = scan(combine, totals, identity, axis, reverse)
    before = _shift(scanned, identity, axis, *((-1, 1) if reverse else (1, -1)))
    before = lax.broadcast_in_dim(lax.expand_dims(before, [0]), within.shape, range(within.ndim))
    result = combine(within, before) if reverse else combine(before, within)
    merged = lax.reshape(lax.transpose(result, np.argsort(order)), padded.shape)
    return lax.slice_in_dim(merged, 0, size, axis=axis)


def _scan_block(combine, x, identity, axis, reverse):
    distance = 1
    while distance < x.shape[axis]:
        step = -distance if reverse else distance
        shifted = _shift(x, identity, axis, step, -step)
        x = combine(x, shifted) if reverse else combine(shifted, x)
        distance *= 2
    return x


def _shift(x, identity, axis, low, high):
    """Pads (or crops) the ends of an axis."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (low, high, 0)
    return lax.pad(x, np.array(identity, x.dtype), config)


def _scan_symbolic(combine, x, axis, reverse):
    order = [axis, *(a for a in range(x.ndim) if a != axis)]
    first = lax.transpose(x, order)
    if not reverse:
        first = lax.rev(first, (0,))

    def combine_lists(xs, ys):
        return [combine(*xs, *ys)] if reverse else [combine(*ys, *xs)]

    (result,) = _suffix_scan_symbolic(combine_lists, [first])
    if not reverse:
        result = lax.rev(result, (0,))
    return lax.transpose(result, np.argsort(order))
