"""Scatter: updates of windows of an array at computed places.

A scatter is first brought into one form: an array of rows, for each update the index of its row,
and the updates. An index outside of the array is ignored. Strategies then differ in how several
updates of one row are combined: in the order of the updates, as JAX does on the CPU.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.xla import xla_data_pb2

from lowering import avals
from lowering.ops import cast, constant, emit, move
from lowering.ops.values import tensor
from lowering.registry import Trait, rule
from lowering.tensors import blocks, indexing, movement, ordering

# The most dimensions that TensorFlow's kernels index.
_MAX_DEPTH = 7


@rule("scatter", keep_constants=True, traits=Trait.SELECTS)
def scatter(ctx, *operands, update_jaxpr, update_consts, **params):
    """Without an update computation, the last update of an element remains."""
    if update_jaxpr is None:
        return _scatter(ctx, *operands, None, _last, **params)
    combine = _Computation(update_jaxpr, update_consts)
    return _scatter(ctx, *operands, combine, _in_turns, **params)


@rule("scatter-add", keep_constants=True)
def scatter_add(ctx, *operands, **params):
    return _scatter(ctx, *operands, lax.add, _sum, **params)


@rule("scatter-sub", keep_constants=True)
def scatter_sub(ctx, *operands, **params):
    return _scatter(ctx, *operands, lax.sub, _difference, **params)


@rule("scatter-mul", keep_constants=True)
def scatter_mul(ctx, *operands, **params):
    # One times a complex number is another where a part is infinite.
    return _scatter(ctx, *operands, lax.mul, _in_turns if _is_complex(ctx) else _product, **params)


@rule("scatter-min", keep_constants=True)
def scatter_min(ctx, *operands, **params):
    return _scatter(ctx, *operands, lax.min, _in_turns if _is_complex(ctx) else _lowest, **params)


@rule("scatter-max", keep_constants=True)
def scatter_max(ctx, *operands, **params):
    return _scatter(ctx, *operands, lax.max, _in_turns if _is_complex(ctx) else _highest, **params)


def _is_complex(ctx):
    return ctx.out_aval.dtype.kind == "c"


@dataclasses.dataclass(frozen=True)
class _Rows:
    """A scatter in its common form.

    Attributes:
      operand: the array, of which the first dimensions are indexed.
      count: the first dimension of `operand`.
      index: for each update the index of a row, along the last dimension.
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

    @property
    def policy(self) -> str:
        """What TensorFlow's kernels do about an index outside."""
        return "" if self.all_inside else "IGNORE"


class _Plan:
    """What the parameters say of the axes of the operand.

    Attributes:
      shape: the dimensions of the operand.
      sizes: those of a window, with 1 for axes that the updates do not have.
      batch: the dimensions of the indices but the last.
      columns: for indexed axes, which element of an index vector is theirs.
      batching: for batching axes, which dimension of the indices is theirs.
      update_dims: for axes that the updates have, which of their dimensions it is.
      batch_dims: the other dimensions of the updates.
      last: the highest place of a window along each indexed axis, in the order of `columns`.
      clips: whether a window outside is moved to fit, rather than dropped.
    """

    def __init__(self, ctx, numbers, mode):
        self.shape, indices_shape, updates_shape = (aval.shape for aval in ctx.in_avals)
        self.batch = indices_shape[:-1]
        self.columns = {axis: i for i, axis in enumerate(numbers.scatter_dims_to_operand_dims)}
        self.batching = dict(
            zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        absent = {*numbers.inserted_window_dims, *self.batching}
        axes = [axis for axis in range(len(self.shape)) if axis not in absent]
        self.update_dims = dict(zip(axes, numbers.update_window_dims, strict=True))
        self.batch_dims = [
            i for i in range(len(updates_shape)) if i not in numbers.update_window_dims
        ]
        self.sizes = [
            updates_shape[self.update_dims[axis]] if axis in self.update_dims else 1
            for axis in range(len(self.shape))
        ]
        self.last = [self.shape[axis] - self.sizes[axis] for axis in self.columns]
        self.clips = mode == lax.GatherScatterMode.CLIP

    def spans(self, axis):
        """Whether windows are as large as the operand along an axis."""
        return self.sizes[axis] == self.shape[axis]

    def places(self, ctx, index):
        """Where windows are inside, by axis, and whether all or which of them were given there."""
        parts = indexing.columns(index)
        clamped = [
            indexing.clamp(ctx, part, last) for part, last in zip(parts, self.last, strict=True)
        ]
        is_inside = np.array(True) if self.clips else indexing.are_same(parts, clamped)
        if isinstance(is_inside, np.ndarray) and is_inside.all():
            is_inside = True
        return dict(zip(self.columns, clamped, strict=True)), is_inside

    def vectors(self, ctx, index, axes):
        """Index vectors with elements for `axes`, moved to be inside if that is asked for."""
        if self.clips and self.columns:
            place, _ = self.places(ctx, index)
            return indexing.vectors([place[axis] for axis in axes])
        index = indexing.signed(index)
        if list(axes) == list(self.columns):
            return index
        parts = indexing.columns(index)
        return indexing.vectors([parts[self.columns[axis]] for axis in axes])


def _scatter(ctx, operand, index, updates, combine, strategy, *, dimension_numbers, mode, **params):
    """Brings a scatter into the common form and leaves it to a strategy.

    Args:
      ctx: the context of the rule.
      operand: the array.
      index: the places.
      updates: the updates.
      combine: the update computation as an elementwise function of JAX arrays; None if it returns
        the update.
      strategy: a function of `ctx`, `_Rows` and `combine` that returns the updated rows.
      dimension_numbers: parameter of the primitive, as those that follow.
      mode: see above.
      **params: see above.
    """
    operand, updates = tensor(operand), tensor(updates)
    plan = _Plan(ctx, dimension_numbers, mode)
    if 0 in plan.shape or 0 in ctx.in_avals[2].shape:
        return operand
    if all(isinstance(dim, int) and dim == 1 for dim in plan.batch):
        return _one_window(ctx, plan, operand, index, updates, combine)
    if ctx.takes_xla_ops:
        scatter = functools.partial(_xla_scatter, ctx, plan, dimension_numbers)
        if strategy not in (_lowest, _highest):
            return scatter(operand, index, updates, combine)
        keys = (_key(x, strategy is _lowest) for x in (operand, updates))
        result = scatter(next(keys), index, next(keys), combine)
        return ordering.from_total_order(result, operand.dtype)
    if params["unique_indices"] and combine is not None:
        strategy = _at_once
    order = _order(plan)
    one_index = strategy in (_product, _at_once, _in_turns)
    rows = _rows(ctx, plan, order, one_index, operand, index, updates)
    result = movement.reshape(ctx, strategy(ctx, rows, combine), [plan.shape[i] for i in order])
    return indexing.transpose(ctx, result, np.argsort(order).tolist())


def _one_window(ctx, plan, operand, index, updates, combine):
    """Reads the window, combines it with the update, and writes it back."""
    shape, sizes = plan.shape, plan.sizes
    place, is_inside = plan.places(ctx, index)
    if isinstance(is_inside, np.ndarray):
        return operand
    place = {axis: part for axis, part in place.items() if not plan.spans(axis)}
    starts = indexing.starts(ctx, place, len(shape))
    updates = movement.reshape(ctx, updates, sizes)
    if combine is not None or is_inside is not True:
        old = blocks.read(ctx, operand, shape, starts, sizes)
        if combine is not None:
            updates = _combine(ctx, combine, old, updates, sizes)
        if is_inside is not True:
            updates = move("SelectV2", movement.reshape(ctx, is_inside, ()), updates, old)
    return blocks.write(ctx, operand, shape, updates, sizes, starts)


def _xla_scatter(ctx, plan, numbers, operand, index, updates, combine):
    index = indexing.index_tensor(plan.vectors(ctx, index, plan.columns))
    scalar = tf.TensorSpec((), operand.dtype)

    @tf.function(autograph=False)
    def computation(old, new):
        return new if combine is None else _combine(ctx, combine, old, new, ())

    proto = xla_data_pb2.ScatterDimensionNumbers(
        update_window_dims=numbers.update_window_dims,
        inserted_window_dims=numbers.inserted_window_dims,
        scatter_dims_to_operand_dims=numbers.scatter_dims_to_operand_dims,
        input_batching_dims=numbers.operand_batching_dims,
        scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
        index_vector_dim=len(index.shape) - 1,
    )
    return gen_xla_ops.xla_scatter(
        operand,
        index,
        updates,
        update_computation=computation.get_concrete_function(scalar, scalar),
        dimension_numbers=proto.SerializeToString(),
        indices_are_sorted=False,
    )


def _order(plan):
    """The axes of the operand in the order in which rows are made of it."""
    axes = list(range(len(plan.shape)))
    narrow = [axis for axis in axes if not plan.spans(axis)]
    end = narrow[-1] + 1 if narrow else 0
    between = [axis for axis in axes[:end] if plan.spans(axis) and plan.shape[axis] != 1]
    if not between or not avals.is_static(plan.shape) or not avals.is_static(plan.batch):
        return axes
    # To move the axes that windows span behind the others copies the operand twice; to index them
    # takes arithmetic for each of their elements.
    positions = math.prod(plan.batch) * math.prod(plan.sizes[:end])
    if 4 * positions < math.prod(plan.shape):
        return axes
    return narrow + [axis for axis in axes if axis not in narrow]


def _rows(ctx, plan, order, one_index, operand, index, updates):
    """The common form; the index of a row is a single one if `one_index`."""
    shape = [plan.shape[axis] for axis in order]
    # A row has the axes after the last that windows do not span.
    depth = 1 + max((i for i, axis in enumerate(order) if not plan.spans(axis)), default=-1)
    lead, row = order[:depth], shape[depth:]
    operand = indexing.transpose(ctx, operand, order)
    window_dims = [plan.update_dims[axis] for axis in order if axis in plan.update_dims]
    updates = indexing.transpose(ctx, updates, plan.batch_dims + window_dims)
    if (
        not one_index
        and 0 < depth <= _MAX_DEPTH
        and set(lead) == set(plan.columns)
        and all(plan.sizes[axis] == 1 for axis in lead)
    ):
        index = plan.vectors(ctx, index, lead)
        count, updates_shape, all_inside = shape[0], (*plan.batch, *row), plan.clips
    else:
        index, all_inside = _positions(ctx, plan, lead, index)
        count = math.prod(shape[:depth])
        operand = movement.reshape(ctx, operand, (count, *row))
        updates_shape = (math.prod(plan.batch) * math.prod(plan.sizes[i] for i in lead), *row)
    updates = movement.reshape(ctx, updates, updates_shape)
    index = indexing.index_tensor(index)
    return _Rows(operand, count, index, updates, updates_shape, all_inside)


def _positions(ctx, plan, lead, index):
    """The positions of the rows that are updated, negative for those that are not to be.

    Args:
      ctx: the context of the rule.
      plan: the plan.
      lead: the axes of the operand that rows do not have.
      index: the places of the windows.

    Returns:
      The positions as a column, and whether none is negative.
    """
    shape = [plan.shape[axis] for axis in lead]
    place, is_inside = plan.places(ctx, index)
    indexed = [i for i, axis in enumerate(lead) if axis in plan.columns and not plan.spans(axis)]
    position = indexing.linear(ctx, [place[lead[i]] for i in indexed], shape, indexed)
    for i, axis in enumerate(lead):
        if axis in plan.batching:
            dim = plan.batching[axis]
            steps = indexing.steps(ctx, shape, i, plan.shape[axis])
            expanded = [plan.batch[j] if j == dim else 1 for j in range(len(plan.batch))]
            position = indexing.add(position, indexing.reshape(ctx, steps, expanded))
    if is_inside is not True:
        position = _mark_dropped(ctx, position, is_inside, math.prod(shape))
    sizes = [plan.sizes[axis] for axis in lead]
    position = indexing.broadcast(ctx, position, plan.batch)
    position = indexing.reshape(ctx, position, (*plan.batch, 1))
    position = indexing.add(position, indexing.window(ctx, shape, sizes))
    count = math.prod(plan.batch) * math.prod(sizes)
    return indexing.reshape(ctx, position, (count, 1)), is_inside is True


def _mark_dropped(ctx, position, is_inside, size):
    """Puts windows that are dropped so far before the array that no element of them is in it."""
    if not any(isinstance(x, tf.Tensor) for x in (position, is_inside, ctx.size(size))):
        return np.where(is_inside, position, -size)
    position = indexing.index_tensor(position)
    size = ctx.size(size)
    before = (
        constant(-size, position.dtype) if isinstance(size, int) else cast(-size, position.dtype)
    )
    return move("SelectV2", tensor(is_inside), position, before)


def _kernel(op, ctx, rows, combine):
    """Leaves the updates to one op, which does them in their order."""
    return emit(op, rows.operand, rows.index, rows.updates, bad_indices_policy=rows.policy)


_last = functools.partial(_kernel, "TensorScatterUpdate")
_sum = functools.partial(_kernel, "TensorScatterAdd")
_difference = functools.partial(_kernel, "TensorScatterSub")


def _extremum(op, ctx, rows, combine):
    """Does it with integers: the kernels of floats tell neither zeros nor NaN apart."""
    operand, updates = (_key(x, op == "TensorScatterMin") for x in (rows.operand, rows.updates))
    keys = dataclasses.replace(rows, operand=operand, updates=updates)
    return ordering.from_total_order(_kernel(op, ctx, keys, combine), rows.operand.dtype)


_lowest = functools.partial(_extremum, "TensorScatterMin")
_highest = functools.partial(_extremum, "TensorScatterMax")


def _key(x, is_lowest):
    """Integers in the order of `x`, with NaN at the end that is taken."""
    if x.dtype == tf.bool:
        return cast(x, tf.int8)
    if not x.dtype.is_floating:
        return x
    key = ordering.total_order(x)
    limit = key.dtype.min if is_lowest else key.dtype.max
    return move("SelectV2", emit("IsNan", x), constant(limit, key.dtype), key)


def _product(ctx, rows, combine):
    """Each row is the first factor of the product of its updates."""
    ids = indexing.index_tensor(indexing.steps(ctx, (rows.count,), 0, rows.count))
    position = tf.raw_ops.Squeeze(input=rows.index, axis=[-1])
    axis = constant(0, np.int32)
    return emit(
        "UnsortedSegmentProd",
        move("ConcatV2", [rows.operand, rows.updates], axis),
        tf.raw_ops.ConcatV2(values=[cast(ids, position.dtype), position], axis=axis),
        _scalar(ctx, rows.count),
    )


def _scalar(ctx, dim):
    size = ctx.size(dim)
    return constant(size, np.int32) if isinstance(size, int) else size


def _at_once(ctx, rows, combine):
    """Reads rows, combines them with their only update and writes them back."""
    position = tf.raw_ops.Squeeze(input=rows.index, axis=[-1])
    if not rows.all_inside:
        # What is read for a position that is ignored does not matter.
        position = tf.raw_ops.Maximum(x=position, y=constant(0, position.dtype))
    old = move("GatherV2", rows.operand, position, constant(0, np.int32))
    new = _combine(ctx, combine, old, rows.updates, rows.updates_shape)
    return _last(ctx, dataclasses.replace(rows, updates=new), None)


def _in_turns(ctx, rows, combine):
    """Like `_at_once`, for the first update of every row, then for the second, and so on."""
    count = rows.updates_shape[0]
    position = tf.raw_ops.Squeeze(input=rows.index, axis=[-1])
    avals = [jax.ShapeDtypeStruct((count,), position.dtype.as_numpy_dtype)]
    turns = ctx.lower(_turns, position, avals=avals)
    outside = constant(-1, position.dtype)

    def take_turn(turn, operand):
        mine = move("SelectV2", tf.equal(turns, turn), position, outside)
        index = tf.raw_ops.ExpandDims(input=mine, axis=constant(1, np.int32))
        turn_rows = dataclasses.replace(rows, operand=operand, index=index, all_inside=False)
        return turn + 1, _at_once(ctx, turn_rows, combine)

    last = tf.reduce_max(turns)
    return tf.while_loop(
        lambda turn, _: turn <= last, take_turn, (constant(0, np.int32), rows.operand)
    )[1]


def _turns(position):
    """How often each element of a vector occurs before it."""
    iota = lax.iota(np.int32, position.shape[0])
    ordered, place = lax.sort((position, iota), num_keys=1, is_stable=True)
    is_first = jnp.concatenate([jnp.ones(1, np.bool_), ordered[1:] != ordered[:-1]])
    first = lax.cummax(jnp.where(is_first, iota, np.int32(0)))
    return lax.sort((place, iota - first), num_keys=1)[1]


def _combine(ctx, combine, old, updates, shape):
    avals = [jax.ShapeDtypeStruct(shape, old.dtype.as_numpy_dtype)] * 2
    return ctx.lower(combine, old, updates, avals=avals)


@dataclasses.dataclass(frozen=True, eq=False)
class _Computation:
    """The jaxpr of an update computation as an elementwise function."""

    jaxpr: Any
    consts: Sequence[Any]

    def __call__(self, old, new):
        fun = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(self.jaxpr, self.consts))
        for _ in old.shape:
            fun = jax.vmap(fun)
        return fun(old, new)[0]
