"""Gather: windows of an array at computed positions."""

import math

import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.xla import xla_data_pb2

from lowering.arrays import complex_math, uint32, uint32_parts
from lowering.narrow_formats import FLOAT, INTEGER, NARROW, SHORT
from lowering.ops import cast, constant, dtypes, move
from lowering.ops.values import tensor
from lowering.passes.legalize.bitcast_uint32 import on_bits
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.targets import TFJS
from lowering.tensors import blocks, indexing, movement


@rule("gather", keep_constants=True, traits=Trait.PROMOTED)
def gather(ctx, operand, index, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    """A window that would reach beyond the operand is moved until it fits, or filled."""
    operand, numbers = tensor(operand), dimension_numbers
    shape, result = ctx.in_avals[0].shape, ctx.out_aval.shape
    if 0 in result:
        return movement.broadcast(ctx, constant(0, operand.dtype), result)
    is_identity = _is_identity(index, shape, numbers, slice_sizes)
    is_xla = ctx.takes_xla_ops and not is_identity
    fills = mode == lax.GatherScatterMode.FILL_OR_DROP
    if is_xla and not fills:
        return _xla_gather(ctx, operand, index, numbers, slice_sizes)
    if fills:
        index = _wrap(index, shape)
    parts = indexing.columns(index)
    clamped = [
        indexing.clamp(ctx, part, shape[axis] - slice_sizes[axis])
        for part, axis in zip(parts, numbers.start_index_map, strict=True)
    ]
    if is_xla:
        windows = _xla_gather(ctx, operand, index, numbers, slice_sizes)
    else:
        windows = _windows(ctx, operand, clamped, numbers, slice_sizes, is_identity)
    is_inside = indexing.are_same(parts, clamped) if fills else np.array(True)
    if isinstance(is_inside, np.ndarray) and is_inside.all():
        return windows
    batch = iter(ctx.in_avals[1].shape[:-1])
    expanded = [1 if i in numbers.offset_dims else next(batch) for i in range(len(result))]
    is_inside = movement.reshape(ctx, tensor(is_inside), expanded)
    value = constant(np.asarray(fill_value).astype(ctx.out_aval.dtype))
    return move("SelectV2", is_inside, windows, value)


@legalization("gather", dtypes=dtypes.UNSIGNED_32)
def gather_uint32(operand, index, *, fill_value, **params):
    """Without a fill value, windows are filled with the greatest integer."""
    if operand.dtype == dtypes.UINT32:
        fill = np.asarray(-1 if fill_value is None else fill_value).astype(np.uint32)
        fill_value = fill.view(np.int32).item()
    params["fill_value"] = fill_value
    return on_bits(lax.gather_p, operand, uint32.indices(index), **params)


@legalization("gather", dtypes=dtypes.COMPLEX)
def gather_of_parts(operand, index, *, fill_value, **params):
    fills = (None, None) if fill_value is None else (np.real(fill_value), np.imag(fill_value))
    parts = zip(complex_math.parts(operand), fills, strict=True)
    return lax.complex(
        *(lax.gather_p.bind(x, index, fill_value=fill, **params) for x, fill in parts)
    )


@decomposition("gather", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def gather_uint32_tfjs(operand, index, *, fill_value, **params):
    index = uint32.indices(index)
    if operand.dtype != dtypes.UINT32:
        return lax.gather_p.bind(operand, index, fill_value=fill_value, **params)
    fill = int(np.asarray(-1 if fill_value is None else fill_value).astype(np.uint32))
    parts = zip(uint32_parts.split(operand), divmod(fill, uint32_parts.BASE), strict=True)
    return uint32_parts.join(
        *(lax.gather_p.bind(x, index, fill_value=n, **params) for x, n in parts)
    )


@on_promoted("gather", dtypes=NARROW + SHORT)
def gather_narrow(operand, index, *, fill_value, primitive, dtypes, storages, **params):
    """Without a fill value, windows are filled with NaN, or the least or greatest integer."""
    dtype, storage = dtypes[0], storages[0]
    if fill_value is None and dtype in FLOAT:
        fill_value = np.nan
    elif fill_value is None and dtype in INTEGER + SHORT:
        info = ml_dtypes.iinfo(dtype)
        fill_value = info.min or info.max
    if dtype in NARROW + SHORT:
        fill_value = np.asarray(fill_value).astype(dtype).astype(storage).item()
    return primitive.bind(operand, index, fill_value=fill_value, **params)


def _is_identity(index, shape, numbers, sizes):
    """Whether windows of size one along an axis are known to be all of the axis, in its order."""
    if not isinstance(index, np.ndarray) or numbers.operand_batching_dims:
        return False
    # The index along an axis is always zero if windows are as large as the axis.
    cut = [axis for axis, dim in enumerate(shape) if sizes[axis] != dim]
    if len(cut) != 1 or sizes[cut[0]] != 1 or cut[0] not in numbers.start_index_map:
        return False
    if not isinstance(shape[cut[0]], int):
        return False
    starts = index[..., numbers.start_index_map.index(cut[0])].ravel()
    return np.array_equal(starts, np.arange(shape[cut[0]]))


def _wrap(index, shape):
    """Indices in the dtype in which JAX compares them with bounds; they wrap around in it."""
    is_large = any(isinstance(dim, int) and dim > indexing.INT32_MAX for dim in shape)
    if isinstance(index, tf.Tensor):
        return cast(index, tf.int64 if is_large else tf.int32)
    return index.astype(np.int64 if is_large else np.int32)


def _windows(ctx, operand, parts, numbers, sizes, is_identity):
    """The windows that begin at clamped indices, given for each indexed axis."""
    shape, batch = ctx.in_avals[0].shape, ctx.in_avals[1].shape[:-1]
    batching = list(numbers.operand_batching_dims)
    # The index along an axis is always zero if windows are as large as the axis.
    columns = {
        axis: part
        for axis, part in zip(numbers.start_index_map, parts, strict=True)
        if sizes[axis] != shape[axis]
    }
    if all(isinstance(dim, int) and dim == 1 for dim in batch):
        starts = indexing.starts(ctx, columns, len(shape))
        window = blocks.read(ctx, operand, shape, starts, sizes)
        return movement.reshape(ctx, window, ctx.out_aval.shape)
    # Along axes that are not indexed, all windows begin at zero: the operand is sliced once.
    kept = [
        shape[axis] if axis in columns or axis in batching else size
        for axis, size in enumerate(sizes)
    ]
    y = movement.slice_(ctx, operand, shape, [0] * len(shape), kept)
    # The axes from the first indexed one to the last become one axis, of which GatherV2 takes
    # elements by their position in row-major order.
    axes = [axis for axis in range(len(shape)) if axis not in batching]
    cut = [i for i, axis in enumerate(axes) if axis in columns]
    first, end = (cut[0], cut[-1] + 1) if cut else (0, 0)
    before, indexed, after = axes[:first], axes[first:end], axes[end:]
    merged = [kept[axis] for axis in indexed]
    y = indexing.transpose(ctx, y, batching + axes)
    outer, inner = ([kept[axis] for axis in part] for part in (batching + before, after))
    y = movement.reshape(ctx, y, [*outer, math.prod(merged), *inner])
    index_batching = list(numbers.start_indices_batching_dims)
    index_axes = [i for i in range(len(batch)) if i not in index_batching]
    if not is_identity:
        order, spans = index_batching + index_axes, [sizes[axis] for axis in indexed]
        indices = {i: columns[axis] for i, axis in enumerate(indexed) if axis in columns}
        position = _positions(ctx, indices, merged, spans, order)
        y = move("GatherV2", y, position, constant(len(outer), np.int32), batch_dims=len(batching))
    before, rest = ([len(batch) + axis for axis in part] for part in (before, indexed + after))
    collapsed = [len(batch) + axis for axis in numbers.collapsed_slice_dims]
    labels = [*index_batching, *before, *index_axes, *rest]
    return _arrange(ctx, y, [x for x in labels if x not in collapsed], sizes, numbers)


def _positions(ctx, indices, shape, sizes, order):
    """The positions of the elements of windows of an array of a shape, in row-major order.

    `indices` maps axes to where windows begin; `order` is that of the dimensions of these indices.
    """
    batch = ctx.in_avals[1].shape[:-1]
    position = indexing.linear(ctx, indices.values(), shape, indices.keys())
    if not indices:
        position = indexing.broadcast(ctx, position, batch)
    position = indexing.transpose(ctx, position, order)
    if any(size != 1 for size in sizes):
        position = indexing.reshape(ctx, position, (*(batch[i] for i in order), 1))
        position = indexing.add(position, indexing.window(ctx, shape, sizes))
    return indexing.index_tensor(position)


def _xla_gather(ctx, operand, index, numbers, sizes):
    """The windows; XLA itself clamps indices."""
    index = indexing.index_tensor(indexing.signed(index))
    proto = xla_data_pb2.GatherDimensionNumbers(
        **numbers._asdict(), index_vector_dim=len(index.shape) - 1
    )
    return gen_xla_ops.xla_gather(
        operand,
        index,
        slice_sizes=cast(ctx.shape(sizes), index.dtype),
        dimension_numbers=proto.SerializeToString(),
        indices_are_sorted=False,
    )


def _arrange(ctx, y, labels, sizes, numbers):
    """Moves the dimensions of the indices and the axes of windows to where they belong.

    `labels` says what the axes of `y` are: first the dimensions of the indices are numbered, then
    the axes of windows.
    """
    batch, result = ctx.in_avals[1].shape[:-1], ctx.out_aval.shape
    sizes = [*batch, *sizes]
    dims, window = (
        iter(sorted(label for label in labels if (label < len(batch)) == is_dim))
        for is_dim in (True, False)
    )
    wanted = [next(window if i in numbers.offset_dims else dims) for i in range(len(result))]
    if [i for i in labels if sizes[i] != 1] == [i for i in wanted if sizes[i] != 1]:
        return movement.reshape(ctx, y, result)
    y = movement.reshape(ctx, y, [sizes[label] for label in labels])
    return indexing.transpose(ctx, y, [labels.index(label) for label in wanted])
