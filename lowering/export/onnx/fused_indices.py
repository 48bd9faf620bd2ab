"""Indices that count from the end, which gathers of ONNX take as they are."""

import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import array_of


def fused(b: Builder, root: ir.Node) -> ir.Value | None:
    """The result of a Gather whose indices are made those from the beginning before it."""
    if root.op_type != "Gather" or root.inputs[0] is None or root.inputs[1] is None:
        return None
    axis = root.attributes["axis"].as_int()
    x, index = root.inputs[0], _from_either_end(root.inputs[1])
    if x.shape is None or index is None or index[1] != x.shape[axis]:
        return None
    return b.op("Gather", x, index[0], axis=axis)


def _from_either_end(x: ir.Value) -> tuple[ir.Value, int] | None:
    """What an index is made of if a size is added to negative ones, and that size."""
    select = x.producer()
    if select is None or select.op_type != "Where":
        return None
    less, total = (None if y is None else y.producer() for y in select.inputs[:2])
    index = select.inputs[2]
    if less is None or total is None or index is None:
        return None
    if less.op_type != "Less" or total.op_type != "Add" or less.inputs[0] is not index:
        return None
    others = [y for y in total.inputs if y is not index]
    if len(others) != 1:
        return None
    zero, size = (None if y is None else array_of(y) for y in (less.inputs[1], others[0]))
    if zero is None or zero.any() or size is None or size.size != 1:
        return None
    return index, int(size.item())
