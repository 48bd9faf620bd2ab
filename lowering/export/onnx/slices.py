"""Parts of arrays: slices, and what is turned or rolled along an axis by them."""

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


@op("Slice")
def slice_(b: Builder, node: Any, x: ir.Value, begin: ir.Value, sizes: ir.Value) -> ir.Value:
    """A slice of given sizes; -1 is the rest."""
    full, part = node.inputs[0].shape, node.outputs[0].shape
    begins, known = _items(begin), array_of(sizes)
    counts = None if known is None else known.tolist()
    if counts is None and part.is_fully_defined():
        counts = part.as_list()
    if begins is None or counts is None:
        return _slice_by_tensors(b, node, x, begin, sizes)
    pairs = list(zip(begins, counts, strict=True))
    # Along the other axes all is taken.
    axes = [i for i, (_, n) in enumerate(pairs) if n != full[i] and (n != -1 or begins[i] != 0)]
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
    """A slice along all axes, whose ends are computed; a size of -1 is the rest here, too."""
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
