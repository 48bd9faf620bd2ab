"""Shapes, and ops that move elements and compute nothing."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.errors import UnsupportedError
from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.reduction import constant
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of, dtype_of, static

# Since this version a split into equal parts says into how many.
_COUNTED_SPLITS = 18

# Arrays of one number, with at most so many elements, are stored as they are.
_FEW = 64


@op("Shape")
def shape(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The shape, of which ONNX makes int64."""
    dtype = dtypes.of(node.outputs[0].dtype)
    sizes = node.inputs[0].shape
    if sizes.is_fully_defined():
        return b.constant(sizes.as_list(), dtype)
    return b.cast(b.op("Shape", x), dtype)


@op("Size")
def size(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The number of elements."""
    return b.cast(b.op("Size", x, dtype=dtypes.INT64), dtypes.of(node.outputs[0].dtype))


@op("Reshape")
def reshape(b: Builder, node: Any, x: ir.Value, sizes: ir.Value) -> ir.Value:
    """Another shape; one unknown size follows from the others."""
    result = node.outputs[0].shape
    if result.rank is not None:
        known = [-1 if n is None else n for n in result.as_list()]
        if known.count(-1) == 0 or (known.count(-1) == 1 and 0 not in known):
            return b.reshape(x, known)
    return b.reshape(x, sizes)


@op("ExpandDims")
def expand_dims(b: Builder, node: Any, x: ir.Value, axis: ir.Value) -> ir.Value:
    """A further axis."""
    rank = node.inputs[0].shape.rank + 1
    return b.unsqueeze(x, int(constant(node, axis, "axes").reshape(())) % rank)


@op("Squeeze")
def squeeze(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """Fewer axes."""
    sizes = node.inputs[0].shape
    if sizes.rank is None:
        sizes = x.shape
    axes = [int(axis) % len(sizes) for axis in node.get_attr("squeeze_dims")]
    return b.squeeze(x, *axes or [i for i, n in enumerate(sizes) if n == 1])


@op("Transpose")
def transpose(b: Builder, node: Any, x: ir.Value, perm: ir.Value) -> ir.Value:
    """Axes in another order."""
    return b.transpose(x, constant(node, perm, "axes").tolist())


@op("Pack")
def pack(b: Builder, node: Any, *parts: ir.Value) -> ir.Value:
    """Arrays along a new axis."""
    axis = node.get_attr("axis") % node.outputs[0].shape.rank
    return b.concat([b.unsqueeze(x, axis) for x in parts], axis)


@op("Unpack")
def unpack(b: Builder, node: Any, x: ir.Value) -> list[ir.Value]:
    """The arrays along an axis."""
    axis = node.get_attr("axis") % node.inputs[0].shape.rank
    return [
        b.op("Gather", x, b.constant(np.int64(i)), axis=axis) for i in range(node.get_attr("num"))
    ]


@op("ConcatV2")
def concat(b: Builder, node: Any, *operands: ir.Value) -> ir.Value:
    """Arrays one after the other."""
    *parts, axis = operands
    rank = node.outputs[0].shape.rank
    return b.concat(parts, int(constant(node, axis, "axes").reshape(())) % rank)


@op("Split")
def split(b: Builder, node: Any, axis: ir.Value, x: ir.Value) -> list[ir.Value]:
    """Equal parts along an axis."""
    number = int(constant(node, axis, "axes").reshape(()))
    count = len(node.outputs)
    size, place = node.inputs[1].shape[number], number % node.inputs[1].shape.rank
    if size is not None:
        return _split(b, x, [size // count] * count, place)
    named = {"num_outputs": count} if b.opset >= _COUNTED_SPLITS else {}
    return list(b.ops("Split", x, outputs=count, axis=place, **named))


@op("SplitV")
def split_sizes(
    b: Builder, node: Any, x: ir.Value, sizes: ir.Value, axis: ir.Value
) -> list[ir.Value]:
    """Parts of some sizes along an axis."""
    rank = node.inputs[0].shape.rank
    number = int(constant(node, axis, "axes").reshape(())) % rank
    known = [out.shape[number] for out in node.outputs]
    if None not in known:
        return _split(b, x, known, number)
    return list(b.ops("Split", x, b.int64(sizes), outputs=len(known), axis=number))


def _split(b: Builder, x: ir.Value, sizes: Sequence[int], axis: int) -> list[ir.Value]:
    if len(sizes) == 1:
        return [x]
    return list(b.ops("Split", x, b.ints(*sizes), outputs=len(sizes), axis=axis))


@op("Tile")
def tile(b: Builder, node: Any, x: ir.Value, multiples: ir.Value) -> ir.Value:
    """Copies along axes."""
    return b.op("Tile", x, b.int64(multiples))


@op("Pad", "PadV2")
def pad(
    b: Builder, node: Any, x: ir.Value, paddings: ir.Value, value: ir.Value | None = None
) -> ir.Value:
    """One number around an array."""
    known = array_of(paddings)
    if known is not None and not known.any():
        return x
    if known is not None:
        pads = b.ints(*known.T.reshape(-1))
    else:
        pads = b.reshape(b.transpose(b.int64(paddings), [1, 0]), [-1])
    number = b.like(x, 0) if value is None else value
    dtype = dtype_of(x)
    wider = b.computed_in("Pad", dtype)
    return b.cast(b.op("Pad", b.cast(x, wider), pads, b.cast(number, wider)), dtype)


@op("MirrorPad")
def mirror_pad(b: Builder, node: Any, x: ir.Value, paddings: ir.Value) -> ir.Value:
    """The array mirrored around its ends, which are not repeated."""
    if node.get_attr("mode") != b"REFLECT":
        raise UnsupportedError(f"{node.name!r} is MirrorPad that repeats the ends")
    pads = constant(node, paddings, "paddings").T.reshape(-1)
    return b.op("Pad", x, b.ints(*pads), mode="reflect")


@op("BroadcastTo")
def broadcast_to(b: Builder, node: Any, x: ir.Value, sizes: ir.Value) -> ir.Value:
    """A larger shape."""
    result = node.outputs[0].shape
    if result.is_fully_defined():
        full = tuple(result.as_list())
        return x if static(x) == full else b.op("Expand", x, b.ints(*full))
    return b.op("Expand", x, b.int64(sizes))


@op("Fill")
def fill(b: Builder, node: Any, sizes: ir.Value, value: ir.Value) -> ir.Value:
    """One number everywhere."""
    result, number = node.outputs[0].shape, array_of(value)
    if result.is_fully_defined():
        sizes = b.ints(*result)
        if number is not None and result.num_elements() <= _FEW:
            return b.constant(np.full(result.as_list(), number))
    if number is None:
        return b.op("Expand", value, b.int64(sizes))
    filled = ir.Tensor(number.reshape(1))
    return b.op("ConstantOfShape", b.int64(sizes), value=filled, dtype=dtype_of(value))


@op("Range")
def range_(b: Builder, node: Any, start: ir.Value, limit: ir.Value, delta: ir.Value) -> ir.Value:
    """Numbers one after the other; they are stored if they are known."""
    known = [array_of(x) for x in (start, limit, delta)]
    if all(x is not None for x in known):
        return b.constant(np.arange(*(x.item() for x in known if x is not None)), dtype_of(start))
    return b.op("Range", start, limit, delta)
