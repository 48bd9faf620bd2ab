"""Models in one file, to which large weights are written one after the other.

A message of protobuf that holds all of them would be a copy of each, and its bytes another one.
"""

from typing import IO, Any

# From this size on a weight is written by itself.
LARGE_BYTES = 1 << 20

# The numbers of fields of `ModelProto`, `GraphProto` and `TensorProto`.
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9


def write(model: Any, file: IO[bytes]) -> None:
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


def _begin(field: int, size: int) -> bytes:
    """What stands before the bytes of a field: its number with its kind, and their count."""
    return _varint(field << 3 | 2) + _varint(size)


def _varint(number: int) -> bytes:
    """A number in seven bits a byte, the least first; the eighth bit says that more follow."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])
