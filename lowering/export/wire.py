"""Messages of protobuf without their schemas, as TensorFlow's own take seconds to import."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

# The bytes of fields of a fixed size, by their kind.
_SIZES = {1: 8, 5: 4}
_VARINT, _BYTES = 0, 2


def fields(message: bytes | memoryview) -> Mapping[int, Sequence[Any]]:
    """The values of each field by its number, in the order in which they stand in a message.

    Integers are Python's, without a sign; all other values are views of bytes, such as those of
    texts or of inner messages. A field that is not there has an empty list.

    Raises:
      ValueError: if the bytes are no message.
    """
    view = memoryview(message)
    found: dict[int, list[Any]] = collections.defaultdict(list)
    position = 0
    while position < len(view):
        tag, position = _varint(view, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(view, position)
            found[number].append(value)
            continue
        if kind == _BYTES:
            size, position = _varint(view, position)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError(f"a field of protobuf has the kind {kind}")
        if position + size > len(view):
            raise ValueError("the file ends within a field")
        found[number].append(view[position : position + size])
        position += size
    return found


def text(values: Sequence[memoryview]) -> str:
    """The text of a field that has at most one value."""
    return bytes(values[-1]).decode() if values else ""


def entries(values: Sequence[memoryview]) -> dict[str, memoryview]:
    """The messages of a field that is a map from texts to messages."""
    pairs = map(fields, values)
    return {text(pair[1]): pair[2][-1] if pair[2] else memoryview(b"") for pair in pairs}


def signed(values: Sequence[int]) -> int:
    """The integer of a field of int64 or int32 that has at most one value."""
    value = values[-1] if values else 0
    return value - (1 << 64) if value >> 63 else value


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    """The number at a position, in seven bits a byte, and the position behind it."""
    number, shift = 0, 0
    while position < len(view):
        digit = view[position]
        position += 1
        number |= (digit & 0x7F) << shift
        if digit < 0x80:
            return number, position
        shift += 7
    raise ValueError("the file ends within a number")
