"""Reductions and running sums along axes."""

from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.errors import UnsupportedError
from lowering.export.onnx import dtypes, layout
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of, dtype_of

_KINDS = {
    "Sum": "ReduceSum",
    "Mean": "ReduceMean",
    "Max": "ReduceMax",
    "Min": "ReduceMin",
    "Prod": "ReduceProd",
    "All": "ReduceMin",
    "Any": "ReduceMax",
}
# Since these versions, axes are an operand of all reductions, and not only of sums, extremes have
# booleans, and there are running products.
_AXES_ARE_OPERANDS, _BOOLEAN, _PRODUCTS = 18, 20, 26


@op(*_KINDS)
def reduce(b: Builder, node: Any, x: ir.Value, axes: ir.Value) -> ir.Value:
    """A reduction over axes, which are constants; of booleans their least or greatest.

    The axes are an operand in every opset, so that patterns have one form; see
    `move_axes_to_attributes`.
    """
    rank = node.inputs[0].shape.rank
    numbers = (
        [int(axis) % rank for axis in constant(node, axes, "axes").reshape(-1)] if rank else []
    )
    if not numbers:
        return x
    keepdims = int(node.get_attr("keep_dims"))
    kind, dtype, shape = _KINDS[node.type], dtype_of(x), node.inputs[0].shape
    kept = [1 if i in numbers else n for i, n in enumerate(shape) if keepdims or i not in numbers]
    x, numbers = layout.reduced(b, x, numbers, bool(keepdims))
    if dtype == dtypes.BOOL and b.opset < _BOOLEAN:
        x = b.cast(x, dtypes.INT32)
    if dtype == dtypes.BOOL and b.opset >= _BOOLEAN:
        result = b.ops(kind, x, b.ints(*numbers), keepdims=keepdims)[0]
    else:
        result = b.op(kind, x, b.ints(*numbers), keepdims=keepdims)
    # TensorFlow does not know it where the axes come from outside of a loop.
    result.shape = ir.Shape(kept)
    return b.cast(result, dtype)


def move_axes_to_attributes(graph: ir.Graph, opset: int) -> None:
    """Lets reductions have their axes as attributes where the set of operators wants that.

    Args:
      graph: the graph; those within it are changed, too.
      opset: the version of the set of operators.
    """
    if opset >= _AXES_ARE_OPERANDS:
        return
    for node in ir.traversal.RecursiveGraphIterator(graph):
        if node.op_type in _KINDS.values() and node.op_type != "ReduceSum":
            axes = node.inputs[1]
            known = None if axes is None else array_of(axes)
            assert known is not None, node.name
            node.resize_inputs(1)
            node.attributes["axes"] = ir.AttrInt64s("axes", known.tolist())


def constant(node: Any, x: ir.Value, what: str) -> np.ndarray:
    """The array of an operand that has to be constant."""
    array = array_of(x)
    if array is None:
        raise UnsupportedError(f"{node.name!r} is {node.type} whose {what} are no constants")
    return array


@op("ArgMax", "ArgMin")
def arg_extreme(b: Builder, node: Any, x: ir.Value, axis: ir.Value) -> ir.Value:
    """The index of the first extreme along an axis."""
    number = int(constant(node, axis, "axes").reshape(()))
    found = b.op(node.type, x, axis=number, keepdims=0)
    return b.cast(found, dtypes.of(node.outputs[0].dtype))


@op("Cumsum")
def cumsum(b: Builder, node: Any, x: ir.Value, axis: ir.Value) -> ir.Value:
    """Running sums."""
    return b.op("CumSum", x, axis, **_running(node))


@op("Cumprod")
def cumprod(b: Builder, node: Any, x: ir.Value, axis: ir.Value) -> ir.Value:
    """Running products; before ONNX had them, products with the elements 1, 2, 4, ... before."""
    if b.opset >= _PRODUCTS:
        return b.op("CumProd", x, axis, **_running(node))
    shape = node.inputs[0].shape
    number = int(constant(node, axis, "axes").reshape(())) % shape.rank
    size = shape[number]
    if size is None:
        raise UnsupportedError(
            f"{node.name!r} is Cumprod of an unknown size, which ONNX has since opset {_PRODUCTS}"
        )
    reverse, step = node.get_attr("reverse"), 1
    if node.get_attr("exclusive"):
        x = _moved(b, x, number, 1, reverse, shape.rank)
    while step < size:
        x = b.op("Mul", x, _moved(b, x, number, step, reverse, shape.rank))
        step *= 2
    return x


def _running(node: Any) -> dict[str, int]:
    return {name: int(node.get_attr(name)) for name in ("exclusive", "reverse")}


def _moved(b: Builder, x: ir.Value, axis: int, count: int, reverse: bool, rank: int) -> ir.Value:
    """An array whose elements are shifted along an axis; ones fill the beginning."""
    last = np.iinfo(np.int64).max
    starts, ends = ([count], [last]) if reverse else ([0], [-count])
    kept = b.slice(x, starts, ends, [axis])
    pads = np.zeros((2, rank), np.int64)
    pads[int(reverse), axis] = count
    return b.op("Pad", kept, b.ints(*pads.reshape(-1)), b.like(x, 1))
