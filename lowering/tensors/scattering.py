"""A scatter as updates of rows: which rows of an array, and where its windows are."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.context import Context
from lowering.ops import cast, constant, move
from lowering.ops.values import tensor
from lowering.tensors import indexing, movement, rows
from lowering.tensors.indexing import Index
from lowering.tensors.movement import Dim


class Plan:
    """What dimension numbers and mode say about the axes of the operand.

    Attributes:
      shape: the dimensions of the operand.
      batch: the dimensions of the indices but the last.
      indexed: the axes that index vectors have elements for, in their order.
      batching: from batching axes to dimensions of the indices.
      update_dims: from the axes that windows have to dimensions of the updates.
      batch_dims: the other dimensions of the updates.
      sizes: the dimensions of a window, with 1 for each axis that it lacks.
      clips: whether a window that is partly outside is moved inside, rather than dropped.
    """

    def __init__(
        self,
        ctx: Context,
        numbers: lax.ScatterDimensionNumbers,
        mode: lax.GatherScatterMode | None,
    ) -> None:
        self.shape, indices_shape, updates_shape = (aval.shape for aval in ctx.in_avals)
        self.batch: tuple[Dim, ...] = indices_shape[:-1]
        self.indexed = numbers.scatter_dims_to_operand_dims
        self.batching = dict(
            zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        window_dims, absent = numbers.update_window_dims, {*numbers.inserted_window_dims}
        axes = [i for i in range(len(self.shape)) if i not in absent and i not in self.batching]
        self.update_dims = dict(zip(axes, window_dims, strict=True))
        self.batch_dims = [i for i in range(len(updates_shape)) if i not in window_dims]
        self.sizes: list[Dim] = [1] * len(self.shape)
        for axis, dim in self.update_dims.items():
            self.sizes[axis] = updates_shape[dim]
        self.clips = mode == lax.GatherScatterMode.CLIP

    def spans(self, axis: int) -> bool:
        """Whether windows are as large as the operand along an axis."""
        return self.sizes[axis] == self.shape[axis]

    def places(self, ctx: Context, index: Index) -> tuple[dict[int, Index], Index | Literal[True]]:
        """Where windows begin along each axis once moved inside, and which ones are not dropped.

        The latter is True if it is known that none is dropped.
        """
        parts = indexing.columns(index)
        clamped = [
            indexing.clamp(ctx, part, self.shape[axis] - self.sizes[axis])
            for part, axis in zip(parts, self.indexed, strict=True)
        ]
        is_inside: Index | Literal[True]
        is_inside = np.array(True) if self.clips else indexing.are_same(parts, clamped)
        if isinstance(is_inside, np.ndarray) and is_inside.all():
            is_inside = True
        return dict(zip(self.indexed, clamped, strict=True)), is_inside

    def vectors(self, ctx: Context, index: Index, axes: Sequence[int]) -> Index:
        """Index vectors with an element for each of `axes`, moved inside if windows are."""
        if self.clips and self.indexed:
            place, _ = self.places(ctx, index)
            return indexing.vectors([place[axis] for axis in axes])
        index = indexing.signed(index)
        if tuple(axes) == tuple(self.indexed):
            return index
        parts = dict(zip(self.indexed, indexing.columns(index), strict=True))
        return indexing.vectors([parts[axis] for axis in axes])


def order_of(plan: Plan) -> list[int]:
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


def rows_of(
    ctx: Context,
    plan: Plan,
    order: Sequence[int],
    one_index: bool,
    operand: tf.Tensor,
    index: Index,
    updates: tf.Tensor,
) -> rows.Rows:
    """A scatter as updates of rows.

    Args:
      plan: what is known about the axes.
      order: the order of the axes of the operand; see `order_of`.
      one_index: whether a row has to be found by one index, not by a vector.
      operand: the array that is updated.
      index: the index vectors, along the last dimension.
      updates: the updates of all windows.
    """
    shape = [plan.shape[axis] for axis in order]
    # Windows span all axes of a row.
    depth = 1 + max((i for i, axis in enumerate(order) if not plan.spans(axis)), default=-1)
    lead, row = order[:depth], shape[depth:]
    operand = indexing.transpose(ctx, operand, order)
    window_dims = [plan.update_dims[axis] for axis in order if axis in plan.update_dims]
    updates = indexing.transpose(ctx, updates, plan.batch_dims + window_dims)
    if (
        not one_index
        and 0 < depth <= indexing.MAX_DEPTH
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
