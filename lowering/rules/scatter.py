"""Scatter: updates of windows of an array at computed places.

A scatter of a single window reads and writes a block. Where XLA compiles, XLA's own op may scatter.
All others become updates of whole rows of an array; see `lowering.tensors.rows`.
"""

import functools
import math

import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.xla import xla_data_pb2

from lowering import avals
from lowering.arrays import complex_math, computations
from lowering.formats import words
from lowering.ops import cast, constant, dtypes, kernels, move
from lowering.ops.dtypes import COMPLEX
from lowering.ops.values import tensor
from lowering.registry import Trait, legalization, rule
from lowering.targets import CONSUMER
from lowering.tensors import blocks, indexing, movement, rows

# The most dimensions that TensorFlow's kernels index.
_MAX_DEPTH = 7

# The update computation of a primitive, and how rows are updated by it.
_COMPUTATIONS = {
    "scatter-add": (lax.add, rows.add),
    "scatter-sub": (lax.sub, rows.subtract),
    "scatter-mul": (lax.mul, rows.multiply),
    "scatter-min": (lax.min, rows.minimum),
    "scatter-max": (lax.max, rows.maximum),
}


@rule("scatter", keep_constants=True, traits=Trait.SELECTS)
def scatter(ctx, *operands, update_jaxpr, update_consts, **params):
    """Without an update computation, the last update of an element remains."""
    if update_jaxpr is None:
        return _scatter(ctx, None, rows.replace, *operands, **params)
    computation = jex_core.ClosedJaxpr(update_jaxpr, update_consts)
    combine = functools.partial(_apply, computation)
    strategy = rows.combine_one_by_one
    if ctx.target.is_natural:
        if computations.monoid(computation) is not None:
            strategy = rows.combine_in_order
        elif not _uses_updates(update_jaxpr):
            strategy = rows.apply_repeatedly
    return _scatter(ctx, combine, strategy, *operands, **params)


def _uses_updates(update_jaxpr):
    """Whether a computation depends on its second operand; that of `scatter_apply` does not."""
    used = [*update_jaxpr.outvars, *(x for eqn in update_jaxpr.eqns for x in eqn.invars)]
    return any(x is update_jaxpr.invars[1] for x in used)


def _apply(computation, old, new):
    """Applies an update computation on scalars to arrays."""
    return computations.elementwise(computation, old.ndim)([old], [new])[0]


@rule(*_COMPUTATIONS, keep_constants=True)
def scatter_add(ctx, *operands, **params):
    combine, strategy = _COMPUTATIONS[ctx.eqn.primitive.name]
    if ctx.out_aval.dtype.kind == "c" and strategy in (rows.multiply, rows.minimum, rows.maximum):
        # Complex numbers have no order, and an infinite one changes when it is multiplied by one.
        strategy = rows.combine_one_by_one
    return _scatter(ctx, combine, strategy, *operands, **params)


@rule("scatter", *_COMPUTATIONS, target=CONSUMER, dtypes=words.HELD, keep_constants=True)
def scatter_consumer(ctx, operand, index, updates, *, update_jaxpr, **_):
    """Indices are words, or what is updated is held in another dtype."""
    is_order = ctx.eqn.primitive.name in ("scatter-min", "scatter-max")
    run = functools.partial(words.run_on_indices, ctx, data=(0, 2), moves=update_jaxpr is None)
    if not is_order or ctx.out_aval.dtype != dtypes.WORD:
        return run(operand, index, updates)[0]
    flipped = words.flipped(operand), index, words.flipped(updates)
    return words.flipped(run(*flipped)[0])


@legalization("scatter", dtypes=COMPLEX)
def scatter_of_parts(operand, index, updates, *, update_jaxpr, update_consts, **params):
    if update_jaxpr is None:
        return _on_parts(lax.scatter, operand, index, updates, **params)
    combine = functools.partial(_apply, jex_core.ClosedJaxpr(update_jaxpr, update_consts))
    return _one_by_one(combine, operand, index, updates, **params)


def _on_parts(scatter, operand, index, updates, *, update_jaxpr=None, update_consts=(), **params):
    """A scatter of the real, and of the imaginary parts."""
    parts = zip(complex_math.parts(operand), complex_math.parts(updates), strict=True)
    return lax.complex(*(scatter(x, index, new, **params) for x, new in parts))


legalization("scatter-add", dtypes=COMPLEX)(functools.partial(_on_parts, lax.scatter_add))
legalization("scatter-sub", dtypes=COMPLEX)(functools.partial(_on_parts, lax.scatter_sub))


def _one_by_one(combine, operand, index, updates, *, dimension_numbers, mode, **_):
    """A scatter in JAX, of one element of the updates after the other.

    A gather with the same windows finds the position of each element in the flat operand, and a
    negative one for what is dropped.
    """
    numbers = lax.GatherDimensionNumbers(
        offset_dims=dimension_numbers.update_window_dims,
        collapsed_slice_dims=dimension_numbers.inserted_window_dims,
        start_index_map=dimension_numbers.scatter_dims_to_operand_dims,
        operand_batching_dims=dimension_numbers.operand_batching_dims,
        start_indices_batching_dims=dimension_numbers.scatter_indices_batching_dims,
    )
    absent = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    windows = iter(dimension_numbers.update_window_dims)
    sizes = [1 if i in absent else updates.shape[next(windows)] for i in range(operand.ndim)]
    flat, new = lax.reshape(operand, (operand.size,)), lax.reshape(updates, (updates.size,))
    numbered = lax.reshape(lax.iota(np.int32, operand.size), operand.shape)
    found = lax.gather(numbered, index, numbers, sizes, mode=mode, fill_value=-1)
    positions = lax.reshape(found, (updates.size,))

    def step(i, flat):
        position, update = (x.at[i].get(mode="promise_in_bounds") for x in (positions, new))
        place = lax.max(position, np.int32(0))
        old = flat.at[place].get(mode="promise_in_bounds")
        kept = lax.select(position < 0, old, combine(old, update))
        return flat.at[place].set(kept, mode="promise_in_bounds")

    count = jnp.asarray(updates.size, np.int32)
    return lax.reshape(lax.fori_loop(np.int32(0), count, step, flat), operand.shape)


for _name in ("scatter-mul", "scatter-min", "scatter-max"):
    legalization(_name, dtypes=COMPLEX)(functools.partial(_one_by_one, _COMPUTATIONS[_name][0]))


class _Plan:
    """What dimension numbers and mode say about the axes of the operand."""

    def __init__(self, ctx, numbers, mode):
        self.shape, indices_shape, updates_shape = (aval.shape for aval in ctx.in_avals)
        # The dimensions of the indices but the last.
        self.batch = indices_shape[:-1]
        # The axes that index vectors have elements for, in their order.
        self.indexed = numbers.scatter_dims_to_operand_dims
        # From batching axes to dimensions of the indices.
        self.batching = dict(
            zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        # From other axes to dimensions of the updates, and the rest of these dimensions.
        window_dims, absent = numbers.update_window_dims, {*numbers.inserted_window_dims}
        axes = [i for i in range(len(self.shape)) if i not in absent and i not in self.batching]
        self.update_dims = dict(zip(axes, window_dims, strict=True))
        self.batch_dims = [i for i in range(len(updates_shape)) if i not in window_dims]
        # The dimensions of a window of the operand.
        self.sizes = [1] * len(self.shape)
        for axis, dim in self.update_dims.items():
            self.sizes[axis] = updates_shape[dim]
        # Whether a window that is partly outside is moved inside, rather than dropped.
        self.clips = mode == lax.GatherScatterMode.CLIP

    def spans(self, axis):
        """Whether windows are as large as the operand along an axis."""
        return self.sizes[axis] == self.shape[axis]

    def places(self, ctx, index):
        """Where windows begin along each axis once moved inside, and which ones are not dropped.

        The latter is True if it is known that none is dropped.
        """
        parts = indexing.columns(index)
        clamped = [
            indexing.clamp(ctx, part, self.shape[axis] - self.sizes[axis])
            for part, axis in zip(parts, self.indexed, strict=True)
        ]
        is_inside = np.array(True) if self.clips else indexing.are_same(parts, clamped)
        if isinstance(is_inside, np.ndarray) and is_inside.all():
            is_inside = True
        return dict(zip(self.indexed, clamped, strict=True)), is_inside

    def vectors(self, ctx, index, axes):
        """Index vectors with an element for each of `axes`, moved inside if windows are."""
        if self.clips and self.indexed:
            place, _ = self.places(ctx, index)
            return indexing.vectors([place[axis] for axis in axes])
        index = indexing.signed(index)
        if tuple(axes) == tuple(self.indexed):
            return index
        parts = dict(zip(self.indexed, indexing.columns(index), strict=True))
        return indexing.vectors([parts[axis] for axis in axes])


def _scatter(
    ctx, combine, strategy, operand, index, updates, *, dimension_numbers, mode, unique_indices, **_
):
    """Scatters by a strategy, or in a shorter way where there is one.

    `combine` is the update computation on arrays, or None to replace elements by their updates.
    """
    operand, updates = tensor(operand), tensor(updates)
    plan = _Plan(ctx, dimension_numbers, mode)
    if 0 in plan.shape or 0 in ctx.in_avals[2].shape:
        return operand
    if all(isinstance(dim, int) and dim == 1 for dim in plan.batch):
        return _update_one_window(ctx, plan, operand, index, updates, combine)
    if ctx.takes_xla_ops:
        scatter = functools.partial(_xla_scatter, ctx, plan, dimension_numbers, combine, index)
        if strategy not in (rows.minimum, rows.maximum):
            return scatter(operand, updates)
        return rows.update_as_integers(scatter, operand, updates, strategy is rows.minimum)
    if unique_indices and combine is not None:
        strategy = rows.combine_at_once
    elif ctx.target.is_consumer and not unique_indices:
        # Windows overlap, and may be moved to one place.
        are_rows = all(plan.spans(axis) or plan.sizes[axis] == 1 for axis in plan.indexed)
        is_distinct = are_rows and not plan.clips and _are_distinct(index)
        strategy = _of_consumer(ctx, strategy, is_distinct)
    order = _order(plan)
    one_index = strategy not in (rows.replace, rows.add, rows.subtract, rows.minimum, rows.maximum)
    updated = _rows(ctx, plan, order, one_index, operand, index, updates)
    result = movement.reshape(ctx, strategy(ctx, updated, combine), [plan.shape[i] for i in order])
    return indexing.transpose(ctx, result, np.argsort(order).tolist())


def _of_consumer(ctx, strategy, is_distinct):
    """The strategy for a consumer, which may lack the op of another.

    Without an op that replaces, what takes its place needs one update for each element, where the
    last of several is to remain. No consumer has the op of products and extrema in all forms.
    """
    if strategy in (rows.minimum, rows.maximum, rows.multiply):
        is_known = avals.is_static(ctx.in_avals[2].shape)
        return rows.combine_in_order if is_known else rows.combine_one_by_one
    has_op = kernels.supports("TensorScatterUpdate", dtypes.to_tf(ctx.out_aval.dtype))
    if strategy is rows.replace and not has_op and not is_distinct:
        return rows.replace_by_last
    return strategy


def _are_distinct(index):
    """Whether it is known that no two index vectors are equal."""
    if not isinstance(index, np.ndarray):
        return index.shape[:-1].num_elements() == 1
    vectors = index.reshape(-1, index.shape[-1])
    return len(np.unique(vectors, axis=0)) == len(vectors)


def _update_one_window(ctx, plan, operand, index, updates, combine):
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
            updates = rows.apply(ctx, combine, old, updates, sizes)
        if is_inside is not True:
            updates = move("SelectV2", movement.reshape(ctx, is_inside, ()), updates, old)
    return blocks.write(ctx, operand, shape, updates, sizes, starts)


def _xla_scatter(ctx, plan, numbers, combine, index, operand, updates):
    index = indexing.index_tensor(plan.vectors(ctx, index, plan.indexed))

    def update(old, new):
        return new if combine is None else rows.apply(ctx, combine, old, new, ())

    scalar = tf.TensorSpec((), operand.dtype)
    computation = tf.function(update, autograph=False).get_concrete_function(scalar, scalar)
    dims = numbers._asdict()
    dims["input_batching_dims"] = dims.pop("operand_batching_dims")
    proto = xla_data_pb2.ScatterDimensionNumbers(**dims, index_vector_dim=len(index.shape) - 1)
    return gen_xla_ops.xla_scatter(
        operand,
        index,
        updates,
        update_computation=computation,
        dimension_numbers=proto.SerializeToString(),
        indices_are_sorted=False,
    )


def _order(plan):
    """The order of the axes of the operand in which its last axes make up a row."""
    axes = list(range(len(plan.shape)))
    narrow = [axis for axis in axes if not plan.spans(axis)]
    end = narrow[-1] + 1 if narrow else 0
    between = [axis for axis in axes[:end] if plan.spans(axis) and plan.shape[axis] != 1]
    if not between or not avals.is_static(plan.shape) or not avals.is_static(plan.batch):
        return axes
    # Either the axes that windows span are transposed to the end, which copies the operand twice,
    # or each element of a window along them needs an index.
    positions = math.prod(plan.batch) * math.prod(plan.sizes[:end])
    if 4 * positions < math.prod(plan.shape):
        return axes
    return narrow + [axis for axis in axes if axis not in narrow]


def _rows(ctx, plan, order, one_index, operand, index, updates):
    """A scatter as updates of rows; if `one_index`, the operand has one dimension before a row."""
    shape = [plan.shape[axis] for axis in order]
    # Windows span all axes of a row.
    depth = 1 + max((i for i, axis in enumerate(order) if not plan.spans(axis)), default=-1)
    lead, row = order[:depth], shape[depth:]
    operand = indexing.transpose(ctx, operand, order)
    window_dims = [plan.update_dims[axis] for axis in order if axis in plan.update_dims]
    updates = indexing.transpose(ctx, updates, plan.batch_dims + window_dims)
    if (
        not one_index
        and 0 < depth <= _MAX_DEPTH
        and set(lead) == set(plan.indexed)
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
    return rows.Rows(operand, count, index, updates, updates_shape, all_inside)


def _positions(ctx, plan, lead, index):
    """The positions of the updated rows as a column, and whether it is known that all are inside.

    Rows have all axes but `lead`. Positions are negative where a window is dropped.
    """
    shape = [plan.shape[axis] for axis in lead]
    place, is_inside = plan.places(ctx, index)
    indexed = [i for i, axis in enumerate(lead) if axis in plan.indexed and not plan.spans(axis)]
    position = indexing.linear(ctx, [place[lead[i]] for i in indexed], shape, indexed)
    for i, axis in enumerate(lead):
        if axis in plan.batching:
            steps = indexing.steps(ctx, shape, i, plan.shape[axis])
            expanded = [n if j == plan.batching[axis] else 1 for j, n in enumerate(plan.batch)]
            position = indexing.add(position, indexing.reshape(ctx, steps, expanded))
    if is_inside is not True:
        position = _mark_dropped(position, is_inside, ctx.size(math.prod(shape)))
    sizes = [plan.sizes[axis] for axis in lead]
    position = indexing.broadcast(ctx, position, plan.batch)
    position = indexing.reshape(ctx, position, (*plan.batch, 1))
    position = indexing.add(position, indexing.window(ctx, shape, sizes))
    count = math.prod(plan.batch) * math.prod(sizes)
    return indexing.reshape(ctx, position, (count, 1)), is_inside is True


def _mark_dropped(position, is_inside, size):
    """Moves dropped windows so far before the array that none of their elements is in it."""
    if not any(isinstance(x, tf.Tensor) for x in (position, is_inside, size)):
        return np.where(is_inside, position, -size)
    position = indexing.index_tensor(position)
    dtype = position.dtype
    before = constant(-size, dtype) if isinstance(size, int) else cast(-size, dtype)
    return move("SelectV2", tensor(is_inside), position, before)
