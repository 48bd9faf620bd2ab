"""Removes what wraps negative indices around, as gathers of ONNX do so themselves."""

import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import array_of, is_alone


def fused(b: Builder, root: ir.Node) -> ir.Value | None:
    """The result of a gather without the ops before it that make negative indices positive."""
    if root.op_type not in ("Gather", "GatherElements") or None in root.inputs:
        return None
    axis = root.attributes["axis"].as_int()
    x, given = root.inputs
    if x is None or given is None or x.shape is None:
        return None
    size = x.shape[axis]
    if not isinstance(size, int) or not size:
        return None
    index = _of_either_end(given, size) or _clipped(b, given, size)
    return None if index is None else b.op(root.op_type, x, index, axis=axis)


def _of_either_end(x: ir.Value, size: int) -> ir.Value | None:
    """The index before the size of the axis is added to negative ones; None if it is not added."""
    found = _from_either_end(x)
    return found[0] if found is not None and found[1] == size else None


def _clipped(b: Builder, x: ir.Value, size: int) -> ir.Value | None:
    """The same for an index that is clipped afterwards: it is clipped to [-size, size) instead."""
    clip = x.producer()
    if clip is None or clip.op_type != "Clip" or len(clip.inputs) != 3 or not is_alone(x):
        return None
    from_beginning, *bounds = clip.inputs
    low, high = (None if y is None else array_of(y) for y in bounds)
    if from_beginning is None or not is_alone(from_beginning) or low is None or high is None:
        return None
    index = _of_either_end(from_beginning, size)
    if index is None or low.any() or not (high == size - 1).all():
        return None
    return b.op("Clip", index, b.like(index, -size), b.like(index, size - 1))


def _from_remainder(node: ir.Node) -> tuple[ir.Value, int] | None:
    """The same for an index that is clipped to [-size, size), then taken modulo the size."""
    x, size = node.inputs
    clip = None if x is None else x.producer()
    if x is None or clip is None or clip.op_type != "Clip" or "fmod" in node.attributes:
        return None
    low, high, count = (None if y is None else array_of(y) for y in (*clip.inputs[1:], size))
    if low is None or high is None or count is None or count.size != 1:
        return None
    return (x, int(count.item())) if low.min() >= -count and high.max() < count else None


def _from_either_end(x: ir.Value) -> tuple[ir.Value, int] | None:
    """The index before a size is added to negative ones, and that size; None if none is added."""
    select = x.producer()
    if select is not None and select.op_type == "Mod":
        return _from_remainder(select)
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
