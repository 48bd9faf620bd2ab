"""Fuses concatenations of an array with parts of itself to one Pad.

JAX pads with the ends, the other ends or mirror images of an array by slices, one axis after the
other. onnxruntime takes as long for one Pad as for the slices, or less.
"""

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import array_of, dtype_of, is_known

# The modes of Pad, and the opsets that have them.
_MODES = {"edge": 17, "reflect": 17, "wrap": 19}


class _Part(NamedTuple):
    """A value as elements of an array along an axis.

    Attributes:
      source: the array.
      indices: the indices of its elements.
      nodes: the nodes that take them.
    """

    source: ir.Value
    indices: np.ndarray
    nodes: tuple[ir.Node, ...]


def fused(b: Builder, root: ir.Node) -> ir.Value | None:
    """The Pad that equals a concatenation; None if there is none."""
    if root.op_type != "Concat":
        return None
    axis = root.attributes["axis"].as_int()
    operands = [x for x in root.inputs if x is not None]
    for place, x in enumerate(operands):
        size = _size(x, axis)
        if x.shape is None or not size or is_known(x):
            continue
        parts = [_part(y, x, axis) for y in operands]
        found = [part for part in parts if part is not None and part.source is x]
        if len(found) < len(parts) or not any(part.nodes for part in found):
            continue
        before = sum(part.indices.size for part in found[:place])
        indices = np.concatenate([part.indices for part in found])
        after = indices.size - size - before
        mode = _mode(indices, size, before, after, b.opset)
        if mode is None or b.computed_in("Pad", dtype_of(x)) != dtype_of(x):
            continue
        pads = np.zeros((2, len(x.shape)), np.int64)
        pads[:, axis] = before, after
        inside = {root, *(node for part in found for node in part.nodes)}
        return _padded(b, x, pads, mode, inside)
    return None


def _part(x: ir.Value, array: ir.Value, axis: int) -> _Part | None:
    """A value as elements of an array along an axis; None if it is not that."""
    if x is array:
        return _Part(array, np.arange(_size(array, axis) or 0), ())
    node = x.producer()
    if node is None or node.op_type not in ("Slice", "Expand") or node.inputs[0] is None:
        return None
    inner = _part(node.inputs[0], array, axis)
    indices = None if inner is None else _taken(node, inner.indices, axis)
    if inner is None or indices is None:
        return None
    return _Part(array, indices, (*inner.nodes, node))


def _taken(node: ir.Node, indices: np.ndarray, axis: int) -> np.ndarray | None:
    """The indices of the elements that a node selects along an axis; None if it is not a selection.

    Other axes are as long as those of the array, for both are operands of one concatenation.
    """
    if node.op_type == "Expand":
        before, after = (x.shape for x in (node.inputs[0], node.outputs[0]) if x is not None)
        count = _size(node.outputs[0], axis)
        if before is None or after is None or len(before) != len(after) or indices.size != 1:
            return None
        return None if count is None else np.repeat(indices, count)
    operands = [None if x is None else array_of(x) for x in node.inputs[1:]]
    known = [x for x in operands if x is not None]
    if len(known) < len(operands) or known[2].tolist() != [axis]:
        return None
    start, end, step = *(int(x.item()) for x in known[:2]), 1
    if len(known) > 3:
        step = int(known[3].item())
    # An end below all numbers means that the first element is taken, too.
    return indices[start : None if end < -indices.size else end : step]


def _size(x: ir.Value, axis: int) -> int | None:
    """The size of an axis, if it is known."""
    size = None if x.shape is None else x.shape[axis]
    return size if isinstance(size, int) else None


def _mode(indices: np.ndarray, size: int, before: int, after: int, opset: int) -> str | None:
    """The mode in which a Pad gives some elements; None if there is none."""
    places = np.arange(-before, size + after)
    period = max(2 * (size - 1), 1)
    expected = {"edge": np.clip(places, 0, size - 1), "wrap": places % size}
    if max(before, after) < size:
        expected["reflect"] = size - 1 - np.abs(places % period - (size - 1))
    for mode, numbers in expected.items():
        if _MODES[mode] <= opset and np.array_equal(indices, numbers):
            return mode
    return None


def _padded(b: Builder, x: ir.Value, pads: np.ndarray, mode: str, inside: set[ir.Node]) -> ir.Value:
    """A padded array; merges with a Pad of it along other axes that only `inside` reads."""
    node = x.producer()
    is_alone = not x.is_graph_output() and set(x.consumers()) <= inside
    if is_alone and node is not None and node.op_type == "Pad" and _mode_of(node) == mode:
        source, before = node.inputs[0], node.inputs[1]
        earlier = None if before is None else array_of(before)
        if source is not None and earlier is not None:
            both = earlier.reshape(pads.shape)
            if mode == "edge" or not (both.any(0) & pads.any(0)).any():
                x, pads = source, both + pads
    return b.op("Pad", x, b.ints(*pads.reshape(-1)), mode=mode)


def _mode_of(node: ir.Node) -> str:
    mode = node.attributes.get("mode")
    return "constant" if mode is None else mode.as_string()
