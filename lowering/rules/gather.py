"""Gather: windows of an array at computed places."""

import math

import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.xla import xla_data_pb2

from lowering.formats import narrow
from lowering.ops import cast, constant, dtypes, move, values
from lowering.ops.values import tensor
from lowering.registry import rule
from lowering.tensors import blocks, indexing, movement


@rule("gather", keep_constants=True)
def gather(ctx, operand, index, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    """A window that would reach beyond the operand is moved until it fits, or filled."""
    operand = tensor(operand)
    shape, result = ctx.in_avals[0].shape, ctx.out_aval.shape
    if 0 in result:
        return movement.broadcast(ctx, constant(0, operand.dtype), result)
    axis = _axis_in_order(index, shape, dimension_numbers, slice_sizes)
    if axis is not None:
        return _in_order(ctx, operand, axis, dimension_numbers, slice_sizes)
    fills = mode == lax.GatherScatterMode.FILL_OR_DROP
    if fills:
        index = _wrap(index, shape)
    is_xla = ctx.takes_xla_ops
    if is_xla:
        windows = _xla_gather(ctx, operand, index, dimension_numbers, slice_sizes)
    if not is_xla or fills:
        parts = indexing.columns(index)
        clamped = [
            indexing.clamp(ctx, part, shape[axis] - slice_sizes[axis])
            for part, axis in zip(parts, dimension_numbers.start_index_map, strict=True)
        ]
    if not is_xla:
        windows = _windows(ctx, operand, clamped, dimension_numbers, slice_sizes)
    if not fills:
        return windows
    is_inside = indexing.are_same(parts, clamped)
    if isinstance(is_inside, np.ndarray) and is_inside.all():
        return windows
    sizes = iter(ctx.in_avals[1].shape[:-1])
    offset_dims = dimension_numbers.offset_dims
    places = [1 if i in offset_dims else next(sizes) for i in range(len(result))]
    is_inside = movement.reshape(ctx, tensor(is_inside), places)
    if len(places) > movement.MAX_RANK:
        is_inside = movement.broadcast(ctx, is_inside, result)
    value = constant(np.asarray(fill_value).astype(ctx.out_aval.dtype))
    return move("SelectV2", is_inside, windows, value)


@rule("gather", dtypes=dtypes.NARROW, keep_constants=True)
def gather_narrow(ctx, operand, index, *, fill_value, **_):
    """What is out of bounds is filled with a number of the narrow dtype."""
    dtype = ctx.out_aval.dtype
    if fill_value is None and dtype in dtypes.NARROW_FLOAT:
        fill_value = np.nan
    elif fill_value is None:
        info = ml_dtypes.iinfo(dtype)
        fill_value = info.min if dtype in dtypes.NARROW_SIGNED else info.max
    held = values.held(np.asarray(fill_value).astype(dtype), dtype).item()
    return narrow.run_on_held(ctx, operand, index, fill_value=held)[0]


def _axis_in_order(index, shape, numbers, sizes):
    """The axis all of whose places are known to be asked for, each once and in order, if any."""
    if not isinstance(index, np.ndarray) or numbers.operand_batching_dims:
        return None
    # A window that spans an axis has only one place along it.
    cut = [axis for axis, dim in enumerate(shape) if sizes[axis] != dim]
    if len(cut) != 1 or sizes[cut[0]] != 1 or cut[0] not in numbers.start_index_map:
        return None
    places = index[..., numbers.start_index_map.index(cut[0])].ravel()
    return cut[0] if np.array_equal(places, np.arange(shape[cut[0]])) else None


def _in_order(ctx, operand, axis, numbers, sizes):
    """The windows at all places along an axis, which are where they should be."""
    batch = ctx.in_avals[1].shape[:-1]
    labels = [len(batch) + i for i in range(len(sizes)) if i not in numbers.collapsed_slice_dims]
    place = sum(label < len(batch) + axis for label in labels)
    labels[place:place] = range(len(batch))
    return _arrange(ctx, operand, labels, [*batch, *sizes], len(batch), numbers.offset_dims)


def _wrap(index, shape):
    """Indices in the dtype in which JAX compares them with bounds: the smallest that holds those.

    An index beyond it wraps around, and may so come to lie inside.
    """
    is_large = any(isinstance(dim, int) and dim > indexing.INT32_MAX for dim in shape)
    if isinstance(index, tf.Tensor):
        return cast(index, tf.int64 if is_large else tf.int32)
    return index.astype(np.int64 if is_large else np.int32)


def _windows(ctx, operand, parts, numbers, sizes):
    """The windows at places inside of the operand."""
    shape, result = ctx.in_avals[0].shape, ctx.out_aval.shape
    batch = ctx.in_avals[1].shape[:-1]
    batching = list(numbers.operand_batching_dims)
    # A window that spans an axis has only one place along it.
    columns = {
        axis: part
        for axis, part in zip(numbers.start_index_map, parts, strict=True)
        if sizes[axis] != shape[axis]
    }
    if all(isinstance(dim, int) and dim == 1 for dim in batch):
        starts = indexing.starts(ctx, columns, len(shape))
        return movement.reshape(ctx, blocks.read(ctx, operand, shape, starts, sizes), result)

    # What is not indexed is cut first.
    kept = [
        shape[axis] if axis in columns or axis in batching else size
        for axis, size in enumerate(sizes)
    ]
    operand = movement.slice_(ctx, operand, shape, [0] * len(shape), kept)
    # What is indexed becomes one axis, together with what lies between.
    axes = [axis for axis in range(len(shape)) if axis not in batching]
    places = [i for i, axis in enumerate(axes) if axis in columns]
    first, end = (places[0], places[-1] + 1) if places else (0, 0)
    before, indexed, after = axes[:first], axes[first:end], axes[end:]
    merged = [kept[axis] for axis in indexed]
    operand = indexing.transpose(ctx, operand, batching + axes)
    outer = [kept[axis] for axis in batching + before]
    flat = [*outer, math.prod(merged), *(kept[axis] for axis in after)]
    operand = movement.reshape(ctx, operand, flat)

    steps = [i for i, axis in enumerate(indexed) if axis in columns]
    position = indexing.linear(ctx, [columns[indexed[i]] for i in steps], merged, steps)
    if not steps:
        position = indexing.broadcast(ctx, position, batch)
    index_batching = list(numbers.start_indices_batching_dims)
    index_axes = [i for i in range(len(batch)) if i not in index_batching]
    position = indexing.transpose(ctx, position, index_batching + index_axes)
    spans = [sizes[axis] for axis in indexed]
    if any(size != 1 for size in spans):
        order = [batch[i] for i in index_batching + index_axes]
        position = indexing.reshape(ctx, position, (*order, 1))
        position = indexing.add(position, indexing.window(ctx, merged, spans))
    y = move(
        "GatherV2",
        operand,
        indexing.index_tensor(position),
        constant(len(outer), np.int32),
        batch_dims=len(batching),
    )
    # The axes of the result in the order in which they are: dimensions of the indices, then axes
    # of windows, which are numbered after them.
    labels = index_batching + [len(batch) + axis for axis in before]
    labels += index_axes + [len(batch) + axis for axis in indexed + after]
    collapsed = [len(batch) + axis for axis in numbers.collapsed_slice_dims]
    labels = [label for label in labels if label not in collapsed]
    return _arrange(ctx, y, labels, [*batch, *sizes], len(batch), numbers.offset_dims)


def _xla_gather(ctx, operand, index, numbers, sizes):
    """The windows; XLA clamps indices itself."""
    index = indexing.index_tensor(indexing.signed(index))
    proto = xla_data_pb2.GatherDimensionNumbers(
        offset_dims=numbers.offset_dims,
        collapsed_slice_dims=numbers.collapsed_slice_dims,
        start_index_map=numbers.start_index_map,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=numbers.start_indices_batching_dims,
        index_vector_dim=len(index.shape) - 1,
    )
    return gen_xla_ops.xla_gather(
        operand,
        index,
        slice_sizes=cast(ctx.shape(sizes), index.dtype),
        dimension_numbers=proto.SerializeToString(),
        indices_are_sorted=False,
    )


def _arrange(ctx, y, labels, sizes, batch_rank, offset_dims):
    """Moves the dimensions of the indices and the axes of windows to where they belong.

    Args:
      ctx: the context of the rule.
      y: the elements of the result in the order of `labels`.
      labels: what the axes of `y` are.
      sizes: how large they are, by label.
      batch_rank: how many dimensions the indices have; further labels are axes of windows.
      offset_dims: the places of the axes of windows.
    """
    result = ctx.out_aval.shape
    batch, windows = (
        iter(sorted(label for label in labels if (label < batch_rank) == is_batch))
        for is_batch in (True, False)
    )
    wanted = [next(windows if i in offset_dims else batch) for i in range(len(result))]
    if [i for i in labels if sizes[i] != 1] == [i for i in wanted if sizes[i] != 1]:
        return movement.reshape(ctx, y, result)
    y = movement.reshape(ctx, y, [sizes[label] for label in labels])
    return indexing.transpose(ctx, y, [labels.index(label) for label in wanted])
