"""Gathers, scatters and the greatest elements."""

from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.elementwise import select
from lowering.export.onnx.reduction import constant
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of, dtype_of, is_index, made_by

_FLOATS = frozenset({dtypes.FLOAT16, dtypes.BFLOAT16, dtypes.FLOAT, dtypes.DOUBLE})
_REDUCTIONS = {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "TensorScatterSub": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}
_SEGMENTS = {
    "UnsortedSegmentSum": ("add", lambda dtype: 0),
    "UnsortedSegmentProd": ("mul", lambda dtype: 1),
    "UnsortedSegmentMax": ("max", lambda dtype: _extremes(dtype)[0]),
    "UnsortedSegmentMin": ("min", lambda dtype: _extremes(dtype)[1]),
}


@op("GatherV2")
def gather(b: Builder, node: Any, x: ir.Value, indices: ir.Value, axis: ir.Value) -> ir.Value:
    """Elements along an axis; with batch dimensions, each batch has its own indices."""
    ranks = [t.shape.rank for t in node.inputs[:2]]
    number = int(constant(node, axis, "axes").reshape(())) % ranks[0]
    batches = node.get_attr("batch_dims")
    if not batches:
        return b.op("Gather", x, _index(b, indices), axis=number)
    if batches == number == ranks[0] - 1 == ranks[1] - 1 and _is_of(node, batches):
        return b.op("GatherElements", x, _index(b, indices), axis=number)
    between = list(range(batches, number))
    rest = list(range(number + 1, ranks[0]))
    x = b.transpose(x, [*range(batches), number, *between, *rest])
    index = b.unsqueeze(b.int64(indices), ranks[1])
    found = b.op("GatherND", x, index, batch_dims=batches)
    first = ranks[1]
    moved = [first + i for i in range(len(between))]
    after = [first + len(between) + i for i in range(len(rest))]
    return b.transpose(found, [*range(batches), *moved, *range(batches, first), *after])


def _is_of(node: Any, batches: int) -> bool:
    """Whether an array and its indices are known to have the same batch sizes."""
    of_array, of_indices = (list(t.shape)[:batches] for t in node.inputs[:2])
    return None not in of_array and of_array == of_indices


def _index(b: Builder, indices: ir.Value) -> ir.Value:
    """Indices in a dtype of gathers; int32 stays unless a cast of int64 indices made it."""
    source = made_by(indices, "Cast")
    if dtype_of(indices) == dtypes.INT32 and (source is None or not is_index(source)):
        return indices
    return b.int64(indices)


@op("GatherNd")
def gather_nd(b: Builder, node: Any, x: ir.Value, indices: ir.Value) -> ir.Value:
    """Elements, or slices, at indices."""
    return b.op("GatherND", x, b.int64(indices))


@op("OneHot")
def one_hot(
    b: Builder, node: Any, indices: ir.Value, depth: ir.Value, on: ir.Value, off: ir.Value
) -> ir.Value:
    """Compares indices with positions, as OneHot of ONNX counts negative ones from the end."""
    count = int(constant(node, depth, "depths").reshape(()))
    axis = node.get_attr("axis") % node.outputs[0].shape.rank
    places = np.arange(count).reshape(-1, *[1] * (node.inputs[0].shape.rank - axis))
    index = b.unsqueeze(b.int64(indices), axis)
    return select(b, node, b.op("Equal", index, b.constant(places, dtypes.INT64)), on, off)


@op(*_REDUCTIONS)
def scatter(b: Builder, node: Any, x: ir.Value, indices: ir.Value, updates: ir.Value) -> ir.Value:
    """An array with other elements at indices, or with something added to them."""
    if node.type == "TensorScatterSub":
        updates = b.op("Neg", updates)
    reduction = _REDUCTIONS[node.type]
    if reduction == "none":
        return b.op("ScatterND", x, b.int64(indices), updates)
    return _reduced(b, x, b.int64(indices), updates, reduction)


@op("ScatterNd")
def scatter_nd(
    b: Builder, node: Any, indices: ir.Value, updates: ir.Value, shape: ir.Value
) -> ir.Value:
    """Zeros with something added at indices."""
    zeros = ir.Tensor(np.zeros(1, dtype_of(updates).numpy()))
    x = b.op("ConstantOfShape", b.int64(shape), value=zeros, dtype=dtype_of(updates))
    return _reduced(b, x, b.int64(indices), updates, "add")


def _reduced(
    b: Builder, x: ir.Value, indices: ir.Value, updates: ir.Value, reduction: str
) -> ir.Value:
    """An array in which elements are reduced with others.

    onnxruntime's kernel for float16 only replaces elements, so these are reduced in float32.
    """
    dtype = dtype_of(x)
    if dtype == dtypes.FLOAT16:
        x, updates = b.cast(x, dtypes.FLOAT), b.cast(updates, dtypes.FLOAT)
    return b.cast(b.op("ScatterND", x, indices, updates, reduction=reduction), dtype)


@op(*_SEGMENTS)
def segments(b: Builder, node: Any, x: ir.Value, ids: ir.Value, count: ir.Value) -> ir.Value:
    """A reduction of the rows with the same number; those with negative ones are left out.

    One more row takes these, and is left out in the end.
    """
    reduction, initial = _SEGMENTS[node.type]
    rank, row = node.inputs[1].shape.rank, node.inputs[0].shape[node.inputs[1].shape.rank :]
    rows = b.reshape(b.int64(count), [1])
    index = b.int64(ids)
    index = b.op("Where", b.op("Less", index, b.ints(0)), rows, index)
    sizes = b.ints(*row) if row.is_fully_defined() else b.op("Shape", x, start=rank)
    shape = b.concat([b.op("Add", rows, b.ints(1)), *([sizes] if row.rank else [])])
    number = np.array([initial(dtype_of(x).numpy())], dtype_of(x).numpy())
    empty = b.op("ConstantOfShape", shape, value=ir.Tensor(number), dtype=dtype_of(x))
    found = _reduced(b, empty, b.unsqueeze(index, rank), x, reduction)
    return b.slice(found, b.ints(0), rows, [0])


def _extremes(dtype: np.dtype) -> tuple[Any, Any]:
    """The least and the largest number of a dtype."""
    info = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    return info.min, info.max


@op("TopKV2")
def top_k(b: Builder, node: Any, x: ir.Value, count: ir.Value) -> list[ir.Value]:
    """The greatest elements along the last axis, and their indices, which are int64."""
    known = array_of(count)
    k = b.reshape(b.int64(count), [1]) if known is None else b.ints(known.item())
    dtype = dtype_of(x)
    # The greatest elements of the negated operand are its least ones.
    around = "Neg" if dtype in _FLOATS else "BitwiseNot"
    source = made_by(x, around)
    operand = b.cast(x if source is None else source, b.computed_in("TopK", dtype))
    attributes = {} if source is None else {"largest": 0}
    found, indices = b.ops("TopK", operand, k, outputs=2, **attributes)
    indices.type = ir.TensorType(dtypes.INT64)
    found = b.cast(found, dtype)
    if source is not None:
        found = b.op(around, found)
    return [found, b.cast(indices, dtypes.of(node.outputs[1].dtype))]
