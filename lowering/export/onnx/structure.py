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
from lowering.export.onnx.values import array_of, dtype_of, made_by, static

# The ends of slices that go as far as there are elements.
_LAST, _FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min

# Since this version a split into equal parts says into how many.
_COUNTED_SPLITS = 18

# Of so many elements, an array with one number everywhere is stored as it is.
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


@op("Slice")
def slice_(b: Builder, node: Any, x: ir.Value, begin: ir.Value, sizes: ir.Value) -> ir.Value:
    """A slice of given sizes; -1 is the rest."""
    whole, part = node.inputs[0].shape, node.outputs[0].shape
    begins, counts = _items(begin), array_of(sizes)
    if counts is None and part.is_fully_defined():
        counts = np.array(part)
    if begins is None or counts is None:
        return _slice_by_tensors(b, node, x, begin, sizes)
    pairs = list(zip(begins, counts.tolist(), strict=True))
    # Along the other axes all is taken.
    axes = [i for i, (_, n) in enumerate(pairs) if n != whole[i] and (n != -1 or begins[i] != 0)]
    if not axes:
        return x
    starts, numbers = (list(each) for each in zip(*(pairs[i] for i in axes), strict=True))
    if all(isinstance(start, int) for start in starts):
        ends = [_LAST if n == -1 else s + n for s, n in zip(starts, numbers, strict=True)]
        return b.slice(x, starts, ends, axes)
    if -1 in numbers:
        return _slice_by_tensors(b, node, x, begin, sizes)
    if numbers == [1]:
        return b.op("Gather", x, starts[0], axis=axes[0])
    starts = [b.constant([s], dtype_of(begin)) if isinstance(s, int) else s for s in starts]
    first = b.int64(b.concat(starts) if len(axes) < len(pairs) else begin)
    return b.slice(x, first, b.op("Add", first, b.ints(*numbers)), axes)


def _items(x: ir.Value) -> list[Any] | None:
    """The elements of a vector: numbers, or vectors of one element; None if they are not known."""
    known = array_of(x)
    if known is not None:
        return [int(item) for item in known]
    scalar = made_by(x, "Unsqueeze")
    if static(x) == (1,) or (scalar is not None and static(scalar) == ()):
        return [x]
    node = x.producer()
    if node is None or node.op_type != "Concat":
        return None
    found: list[Any] = []
    for part in node.inputs:
        items = None if part is None else _items(part)
        if items is None:
            return None
        found += items
    return found


def _slice_by_tensors(
    b: Builder, node: Any, x: ir.Value, begin: ir.Value, sizes: ir.Value
) -> ir.Value:
    part, counts = node.outputs[0].shape, array_of(sizes)
    if part.is_fully_defined():
        sizes = b.ints(*part)
    starts, counts64 = b.int64(begin), b.int64(sizes)
    ends64 = b.op("Add", starts, counts64)
    if counts is None and not part.is_fully_defined():
        rest = b.op("Less", counts64, b.ints(0))
        ends64 = b.op("Where", rest, b.ints(_LAST), ends64)
    elif not part.is_fully_defined() and counts is not None and (counts == -1).any():
        ends64 = b.op("Where", b.constant(counts == -1), b.ints(_LAST), ends64, dtype=dtypes.INT64)
    return b.slice(x, starts, ends64, list(range(node.inputs[0].shape.rank)))


@op("StridedSlice")
def strided_slice(
    b: Builder, node: Any, x: ir.Value, begin: ir.Value, end: ir.Value, strides: ir.Value
) -> ir.Value:
    """Slices with steps, indices that remove an axis, and new axes."""
    steps = constant(node, strides, "strides").tolist()
    begins, ends = array_of(begin), array_of(end)
    rank = node.inputs[0].shape.rank

    def has(mask: str, i: int) -> bool:
        return bool(node.get_attr(f"{mask}_mask") >> i & 1)

    used = sum(not has("new_axis", i) and not has("ellipsis", i) for i in range(len(steps)))
    axis, place = 0, 0
    taken: list[tuple[int, Any, Any, int]] = []
    removed: list[int] = []
    added: list[int] = []
    for i, step in enumerate(steps):
        if has("ellipsis", i):
            axis, place = axis + rank - used, place + rank - used
        elif has("new_axis", i):
            added.append(place)
            place += 1
        else:
            first = _LAST if step < 0 else 0
            start = first if has("begin", i) else _item(b, begin, begins, i)
            stop = (_FIRST if step < 0 else _LAST) if has("end", i) else _item(b, end, ends, i)
            if has("shrink_axis", i):
                start, step = _item(b, begin, begins, i), 1
                stop = _following(b, start)
                removed.append(axis)
            else:
                place += 1
            if not (isinstance(start, int) and (start, stop, step) == (0, _LAST, 1)):
                taken.append((axis, start, stop, step))
            axis += 1
    x = _removed(b, x, taken, removed)
    return b.unsqueeze(x, *added)


def _removed(b: Builder, x: ir.Value, taken: Sequence[Any], removed: Sequence[int]) -> ir.Value:
    """A slice without some of its axes."""
    if len(taken) == 1 and list(removed) == [taken[0][0]]:
        start = taken[0][1]
        index = b.constant(np.int64(start)) if isinstance(start, int) else b.reshape(start, ())
        return b.op("Gather", x, index, axis=removed[0])
    if taken:
        axes, starts, ends, steps = (list(each) for each in zip(*taken, strict=True))
        x = b.slice(x, _vector(b, starts), _vector(b, ends), axes, steps)
    return b.squeeze(x, *removed)


def _item(b: Builder, x: ir.Value, known: np.ndarray | None, i: int) -> Any:
    """An element of a vector: a number if it is known, else a vector of one element."""
    if known is not None:
        return int(known[i])
    return b.int64(b.op("Gather", x, b.ints(i), axis=0))


def _following(b: Builder, start: Any) -> Any:
    """The end of a slice of one element."""
    if isinstance(start, int):
        return _LAST if start == -1 else start + 1
    end = b.op("Add", start, b.ints(1))
    is_last = b.op("Equal", start, b.ints(-1))
    return b.op("Where", is_last, b.ints(_LAST), end)


def _vector(b: Builder, items: Sequence[Any]) -> Any:
    """A vector of numbers and of values of one element."""
    if all(isinstance(item, int) for item in items):
        return items
    return b.concat([b.ints(item) if isinstance(item, int) else item for item in items])


@op("ReverseV2")
def reverse(b: Builder, node: Any, x: ir.Value, axes: ir.Value) -> ir.Value:
    """Slices with steps of -1."""
    numbers = constant(node, axes, "axes").tolist()
    return b.reversed(x, numbers) if numbers else x


@op("Roll")
def roll(b: Builder, node: Any, x: ir.Value, shifts: ir.Value, axes: ir.Value) -> ir.Value:
    """The end of each axis in front of its beginning."""
    numbers = (
        constant(node, v, what).reshape(-1) for v, what in ((shifts, "shifts"), (axes, "axes"))
    )
    shape = node.inputs[0].shape
    for shift, axis in zip(*numbers, strict=True):
        number, size = int(axis) % shape.rank, shape[int(axis)]
        if size is None:
            raise UnsupportedError(
                f"{node.name!r} is Roll of an unknown size, which lowering does not write to ONNX"
            )
        start = int(-shift) % size if size else 0
        if start:
            bounds = ((start, _LAST), (0, start))
            parts = [b.slice(x, [low], [high], [number]) for low, high in bounds]
            x = b.concat(parts, number)
    return x


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
