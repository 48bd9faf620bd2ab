"""Updates of the rows of an array by index. A row may have several updates.

Strategies apply the updates of a row in their order, as JAX does on the CPU. Each takes the context
of the rule, `Rows`, and the update computation, a function of old elements and their updates; a
strategy for one known computation ignores it. The result is the updated array. `multiply`,
`*_of_segments`, `replace_by_last`, `apply_repeatedly` and the strategies that ask for a
computation, `combine_*`, need index vectors of one element.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import repetition
from lowering.context import Context
from lowering.ops import cast, constant, emit, integers, move, vector
from lowering.tensors import indexing, movement, ordering

Update = Callable[[jax.Array, jax.Array], jax.Array]


@dataclasses.dataclass(frozen=True)
class Rows:
    """An array, and updates of its rows.

    Attributes:
      operand: the array, of which the first dimensions are indexed.
      count: the first dimension of `operand`.
      index: for each update the index of a row, along the last dimension. If it is outside of
        `operand`, the update is ignored.
      updates: the updates, with the dimensions of `index` but the last, then those of a row.
      updates_shape: the dimensions of `updates`.
      all_inside: whether no index is outside of `operand`.
    """

    operand: tf.Tensor
    count: Any
    index: tf.Tensor
    updates: tf.Tensor
    updates_shape: Sequence[Any]
    all_inside: bool


def _by_kernel(op, ctx, rows, combine=None):
    if ctx.target.has_tensorflow_kernels:
        policy = "" if rows.all_inside else "IGNORE"
        return emit(op, rows.operand, rows.index, rows.updates, bad_indices_policy=policy)
    if rows.all_inside:
        return emit(op, rows.operand, rows.index, rows.updates)
    return _with_room(op, ctx, rows)


def _with_room(op, ctx, rows):
    """Updates of which some are outside, for runtimes that ignore none.

    These update an additional row at the end, which is removed afterwards.
    """
    rank, indexed = rows.operand.shape.rank, rows.index.shape[-1]
    known = rows.operand.shape.as_list()
    if rank > ctx.target.max_rank("Slice") and None not in known:
        merged = [*known[:indexed], math.prod(known[indexed:])]
        operand = movement.reshape(ctx, rows.operand, merged)
        parts = [*rows.updates_shape[: rows.index.shape.rank - 1], merged[-1]]
        updates = movement.reshape(ctx, rows.updates, parts)
        rows = dataclasses.replace(rows, operand=operand, updates=updates, updates_shape=parts)
        return movement.reshape(ctx, _with_room(op, ctx, rows), known)
    shape = tf.shape(rows.operand)
    sizes = [shape[i] if dim is None else dim for i, dim in enumerate(known)]
    index = _behind_if_outside(ctx, rows, sizes[:indexed])
    room = vector([1, *sizes[1:]])
    row = tf.raw_ops.Fill(dims=room, value=constant(0, rows.operand.dtype))
    padded = move("ConcatV2", [rows.operand, row], constant(0, np.int32))
    updated = emit(op, padded, index, rows.updates)
    begin = integers([0] * rank)
    size = integers(known) if None not in known else shape
    return move("Slice", updated, begin, size)


def _behind_if_outside(ctx, rows, limits):
    """The indices, where those outside of the dimensions `limits` are that of an additional row."""
    index, dtype = rows.index, rows.index.dtype
    zero, count = constant(0, dtype), cast(tf.convert_to_tensor(ctx.size(rows.count)), dtype)
    if len(limits) == 1:
        index = emit("SelectV2", emit("Less", index, zero), count, index)
        return emit("Minimum", index, count)
    is_known = all(isinstance(limit, int) for limit in limits)
    last = constant(limits, dtype) if is_known else cast(tf.stack(limits), dtype)
    inside = emit("LogicalAnd", index >= zero, index < last)
    inside = emit("All", inside, integers([-1]), keep_dims=True)
    return emit("SelectV2", inside, index, tf.stack([count] + [zero] * (len(limits) - 1)))


replace = functools.partial(_by_kernel, "TensorScatterUpdate")
add = functools.partial(_by_kernel, "TensorScatterAdd")
subtract = functools.partial(_by_kernel, "TensorScatterSub")
# As `minimum` and `maximum`, but NaN and the signs of zeros are those of the runtime.
natural_minimum = functools.partial(_by_kernel, "TensorScatterMin")
natural_maximum = functools.partial(_by_kernel, "TensorScatterMax")


def _extremum(op, ctx, rows, combine):
    def update(operand, updates):
        return _by_kernel(op, ctx, dataclasses.replace(rows, operand=operand, updates=updates))

    return update_as_integers(update, rows.operand, rows.updates, op == "TensorScatterMin")


minimum = functools.partial(_extremum, "TensorScatterMin")
maximum = functools.partial(_extremum, "TensorScatterMax")


def update_as_integers(
    update: Callable[..., tf.Tensor], operand: tf.Tensor, updates: tf.Tensor, is_minimum: bool
) -> tf.Tensor:
    """`update(operand, updates)`, an update by minima or maxima, on integers in the same order.

    TensorFlow's and XLA's own updates of floats ignore NaN or the signs of zeros.
    """
    result = update(_key(operand, is_minimum), _key(updates, is_minimum))
    return ordering.from_total_order(result, operand.dtype)


def _key(x, is_minimum):
    """Integers in the order of `x`, with NaN as the minimum if one is wanted, else the maximum."""
    if x.dtype == tf.bool:
        return cast(x, tf.int8)
    if not x.dtype.is_floating:
        return x
    order = ordering.total_order(x)
    nan = order.dtype.min if is_minimum else order.dtype.max
    return move("SelectV2", emit("IsNan", x), constant(nan, order.dtype), order)


def _by_segments(op: str, ctx: Context, rows: Rows, combine: Update | None = None) -> tf.Tensor:
    """Reduces the segment of each row and its updates by an op such as UnsortedSegmentMax.

    Updates whose index is negative are in no segment.
    """
    size = ctx.size(rows.count)
    ids = indexing.index_tensor(indexing.steps(ctx, (rows.count,), 0, rows.count))
    position = tf.raw_ops.Squeeze(input=rows.index, axis=[-1])
    axis = constant(0, np.int32)
    return emit(
        op,
        move("ConcatV2", [rows.operand, rows.updates], axis),
        tf.raw_ops.ConcatV2(values=[cast(ids, position.dtype), position], axis=axis),
        constant(size, np.int32) if isinstance(size, int) else size,
    )


multiply = functools.partial(_by_segments, "UnsortedSegmentProd")


def _extremum_of_segments(op: str, ctx: Context, rows: Rows, combine: Update) -> tf.Tensor:
    """The extremum of each row and its updates; NaN and the signs of zeros are the runtime's.

    UnsortedSegmentMax starts from the least finite number, so it never returns -inf. A second one
    finds the segments that hold nothing else. Minima are the same with the other sign.
    """
    found = _by_segments(op, ctx, rows)
    dtype = rows.operand.dtype
    if not dtype.is_floating:
        return found
    first = constant(-np.inf if op == "UnsortedSegmentMax" else np.inf, dtype)
    operand, updates = (
        cast(emit("NotEqual", x, first), tf.int32) for x in (rows.operand, rows.updates)
    )
    others = dataclasses.replace(rows, operand=operand, updates=updates)
    has_others = emit(
        "Greater", _by_segments("UnsortedSegmentMax", ctx, others), constant(0, tf.int32)
    )
    return emit("SelectV2", has_others, found, first)


minimum_of_segments = functools.partial(_extremum_of_segments, "UnsortedSegmentMin")
maximum_of_segments = functools.partial(_extremum_of_segments, "UnsortedSegmentMax")


def combine_at_once(ctx: Context, rows: Rows, combine: Update) -> tf.Tensor:
    """Combines rows with their updates, where no row has more than one."""
    position = tf.raw_ops.Squeeze(input=rows.index, axis=[-1])
    if not rows.all_inside:
        # What is read for an ignored update does not matter.
        position = tf.raw_ops.Maximum(x=position, y=constant(0, position.dtype))
    old = move("GatherV2", rows.operand, position, constant(0, np.int32))
    new = apply(ctx, combine, old, rows.updates, rows.updates_shape)
    return replace(ctx, dataclasses.replace(rows, updates=new))


def combine_one_by_one(ctx: Context, rows: Rows, combine: Update) -> tf.Tensor:
    """Combines all rows with their first updates, then with their second ones, and so on."""
    position = tf.raw_ops.Squeeze(input=rows.index, axis=[-1])
    aval = jax.ShapeDtypeStruct(rows.updates_shape[:1], position.dtype.as_numpy_dtype)
    turns = ctx.lower(_occurrences, position, avals=[aval])
    outside = constant(-1, position.dtype)

    def take_turn(turn, operand):
        mine = move("SelectV2", tf.equal(turns, turn), position, outside)
        index = tf.raw_ops.ExpandDims(input=mine, axis=constant(1, np.int32))
        turn_rows = dataclasses.replace(rows, operand=operand, index=index, all_inside=False)
        return turn + 1, combine_at_once(ctx, turn_rows, combine)

    last = tf.reduce_max(turns)
    first = (constant(0, np.int32), rows.operand)
    return tf.while_loop(lambda turn, _: turn <= last, take_turn, first)[1]


def _occurrences(position):
    """How many elements before each element of a vector are equal to it."""
    ordered, place = _sorted_with_places(position)
    iota = lax.iota(np.int32, position.shape[0])
    is_first = jnp.concatenate([jnp.ones(1, np.bool_), ordered[1:] != ordered[:-1]])
    first = lax.cummax(jnp.where(is_first, iota, np.int32(0)))
    return lax.sort((place, iota - first), num_keys=1)[1]


def replace_by_last(ctx: Context, rows: Rows, combine: Update | None) -> tf.Tensor:
    """Replaces rows by the last of their updates, for an op that adds those of one row."""
    positions, updates = _in_order(ctx, rows)
    return replace(ctx, _of_last(ctx, rows, positions, updates))


def combine_in_order(ctx: Context, rows: Rows, combine: Update) -> tf.Tensor:
    """Combines the updates of each row, then rows with these; the computation is associative.

    The number of updates has to be known.
    """
    positions, updates = _in_order(ctx, rows)
    shapes = (rows.updates_shape[:1], rows.updates_shape)
    avals = [
        jax.ShapeDtypeStruct(shape, x.dtype.as_numpy_dtype)
        for shape, x in zip(shapes, (positions, updates), strict=True)
    ]
    combined = ctx.lower(_combined_so_far, positions, updates, avals=avals, combine=combine)
    return combine_at_once(ctx, _of_last(ctx, rows, positions, combined), combine)


def apply_repeatedly(ctx: Context, rows: Rows, combine: Update) -> tf.Tensor:
    """Applies a computation that ignores the updates to each row, as often as the row has any."""
    counted = dataclasses.replace(
        rows,
        operand=_filled(ctx, 0, [rows.count]),
        updates=_filled(ctx, 1, rows.updates_shape[:1]),
        updates_shape=rows.updates_shape[:1],
    )
    counts = add(ctx, counted)
    shape = (rows.count, *rows.updates_shape[1:])
    avals = [
        jax.ShapeDtypeStruct(shape, rows.operand.dtype.as_numpy_dtype),
        jax.ShapeDtypeStruct(shape[:1], np.int32),
    ]
    return ctx.lower(
        repetition.apply_to_each, rows.operand, counts, avals=avals, apply=lambda x: combine(x, x)
    )


def _filled(ctx, number, shape):
    """An array of one number in int32."""
    return movement.broadcast(ctx, constant(number, np.int32), shape)


def _in_order(ctx, rows):
    """The positions of the updates in ascending order, and the updates in that order."""
    position = tf.raw_ops.Squeeze(input=rows.index, axis=[-1])
    aval = jax.ShapeDtypeStruct(rows.updates_shape[:1], position.dtype.as_numpy_dtype)
    positions, places = ctx.lower(_sorted_with_places, position, avals=[aval])
    return positions, move("GatherV2", rows.updates, places, constant(0, np.int32))


def _of_last(ctx, rows, positions, updates):
    """Ordered updates, of which only the last one of each row is inside."""
    aval = jax.ShapeDtypeStruct(rows.updates_shape[:1], positions.dtype.as_numpy_dtype)
    lasts = ctx.lower(_positions_of_last, positions, avals=[aval])
    index = tf.raw_ops.ExpandDims(input=lasts, axis=constant(1, np.int32))
    return dataclasses.replace(rows, index=index, updates=updates, all_inside=False)


def _sorted_with_places(position):
    iota = lax.iota(np.int32, position.shape[0])
    return lax.sort((position, iota), num_keys=1, is_stable=True)


def _positions_of_last(positions):
    """Ordered positions, or -1 where the next one is equal."""
    is_followed = jnp.concatenate([positions[1:] == positions[:-1], jnp.zeros(1, np.bool_)])
    return jnp.where(is_followed, np.array(-1, positions.dtype), positions)


def _combined_so_far(positions, updates, *, combine):
    """Each update combined with those before it of the same row, in a logarithm of steps."""
    step = 1
    while step < positions.shape[0]:
        earlier = jnp.concatenate([updates[:step], updates[:-step]])
        is_same = positions[step:] == positions[:-step]
        is_same = jnp.concatenate([jnp.zeros(step, np.bool_), is_same])
        is_same = lax.broadcast_in_dim(is_same, updates.shape, (0,))
        updates = lax.select(is_same, combine(earlier, updates), updates)
        step *= 2
    return updates


def apply(
    ctx: Context, combine: Update, old: tf.Tensor, updates: tf.Tensor, shape: Any
) -> tf.Tensor:
    """An update computation applied to elements and their updates, both of one shape."""
    avals = [jax.ShapeDtypeStruct(shape, old.dtype.as_numpy_dtype)] * 2
    return ctx.lower(combine, old, updates, avals=avals)
