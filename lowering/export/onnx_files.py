"""Models of ONNX in one file, to which large weights are written one after the other.

A message of protobuf that holds all of them would be a copy of each, and its bytes another one.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

# From this size on a weight is written by itself.
LARGE_BYTES = 1 << 20

# The numbers of fields of `ModelProto`, `GraphProto`, `TensorProto` and `StringStringEntryProto`.
_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
_KEY, _VALUE = 1, 2
# The value of `TensorProto.data_location` for numbers in another file.
_EXTERNAL = 1

# The kinds of fields in protobuf, and the bytes of those that have a fixed size.
_VARINT, _BYTES = 0, 2
_SIZES = {1: 8, 5: 4}


def write(model: Any, file: BinaryIO) -> None:
    """Writes a model, an `onnx_ir.Model`, as one message.

    Its graph ends with the large weights: elements of a repeated field may stand anywhere.
    """
    import onnx
    import onnx_ir as ir

    initializers = model.graph.initializers
    large = {
        name: x
        for name, x in initializers.items()
        if x.const_value is not None and x.const_value.nbytes >= LARGE_BYTES
    }
    for name in large:
        del initializers[name]
    try:
        proto = ir.to_proto(model)
    finally:
        initializers.update(large)
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    tensors = []
    for name, x in large.items():
        tensor = x.const_value
        described = onnx.TensorProto(name=name, dims=tensor.shape, data_type=int(tensor.dtype))
        begin = described.SerializeToString() + _begin(_RAW_DATA, tensor.nbytes)
        tensors.append((_begin(_INITIALIZER, len(begin) + tensor.nbytes) + begin, tensor))
    size = len(graph) + sum(len(begin) + tensor.nbytes for begin, tensor in tensors)
    file.write(proto.SerializeToString() + _begin(_GRAPH, size) + graph)
    for begin, tensor in tensors:
        file.write(begin)
        tensor.tofile(file)


def without_weights(file: BinaryIO) -> bytes:
    """The message in a file, without the numbers of large weights, which are not read."""
    return _with_weights(file, lambda begin, size: b"")


def with_external_weights(file: BinaryIO, name: str) -> bytes:
    """The message in a file, whose large weights are external data: the numbers in that file.

    Args:
      file: the file.
      name: its name, by which a model in the same folder finds it.
    """

    def external(begin: int, size: int) -> bytes:
        entries = {"location": name, "offset": str(begin), "length": str(size)}
        described = b"".join(
            _field(_EXTERNAL_DATA, _field(_KEY, key.encode()) + _field(_VALUE, value.encode()))
            for key, value in entries.items()
        )
        return described + _varint(_DATA_LOCATION << 3 | _VARINT) + _varint(_EXTERNAL)

    return _with_weights(file, external)


def _with_weights(file: BinaryIO, instead: Callable[[int, int], bytes]) -> bytes:
    file.seek(0, os.SEEK_END)
    end = file.tell()
    file.seek(0)
    return _copied(file, end, (_GRAPH, _INITIALIZER, _RAW_DATA), instead)


def _copied(
    file: BinaryIO, end: int, replaced: Sequence[int], instead: Callable[[int, int], bytes]
) -> bytes:
    """The bytes of a message up to an end, with others in place of large values of a field.

    Args:
      file: the file, at the begin of the message.
      end: where the message ends.
      replaced: the number of the field, after those of the messages that it is in.
      instead: the bytes of the fields in its place, by where its value begins and its size.
    """
    first, *inner = replaced
    parts = []
    while file.tell() < end:
        tag = _read_varint(file)
        kind = tag & 7
        if kind == _VARINT:
            parts.append(_varint(tag) + _varint(_read_varint(file)))
        elif kind in _SIZES:
            parts.append(_varint(tag) + file.read(_SIZES[kind]))
        elif kind == _BYTES:
            size = _read_varint(file)
            if tag >> 3 != first or size < LARGE_BYTES:
                parts.append(_field(tag >> 3, file.read(size)))
            elif inner:
                part = _copied(file, file.tell() + size, inner, instead)
                parts.append(_field(tag >> 3, part))
            else:
                parts.append(instead(file.tell(), size))
                file.seek(size, os.SEEK_CUR)
        else:
            raise ValueError(f"a field of protobuf has the kind {kind}")
    return b"".join(parts)


def _read_varint(file: BinaryIO) -> int:
    number, shift = 0, 0
    while digit := file.read(1):
        number |= (digit[0] & 0x7F) << shift
        if digit[0] < 0x80:
            return number
        shift += 7
    raise ValueError("the file ends within a number")


def _field(field: int, value: bytes) -> bytes:
    return _begin(field, len(value)) + value


def _begin(field: int, size: int) -> bytes:
    """What stands before the bytes of a field: its number with its kind, and their count."""
    return _varint(field << 3 | _BYTES) + _varint(size)


def _varint(number: int) -> bytes:
    """A number in seven bits a byte, the least first; the eighth bit says that more follow."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])
