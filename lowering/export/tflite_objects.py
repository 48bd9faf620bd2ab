"""TF Lite models as objects of the format's schema, and as bytes again.

Weights are most of a model. The objects have views of them, and each is copied once when a model
becomes bytes.
"""

import collections
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

_IDENTIFIER = b"TFL3"
# The metadata of models that have their buffers behind the flatbuffer.
_BEHIND = b"buffer_location"
# Where LiteRT asks buffers to begin.
_ALIGNMENT = 16
# A builder that is too small doubles its size; pages that it does not write cost nothing.
_ROOM, _ROOM_OF_EACH = 1 << 16, 1 << 11


def unpacked(model: bytes) -> Any:
    """A model as an object, with views of its buffers, wherever the model has them."""
    root: Any = flatbuffer_utils.convert_bytearray_to_object(model)
    for buffer in root.buffers:
        if buffer.offset:
            buffer.data = np.frombuffer(model, np.uint8, buffer.size, buffer.offset)
        buffer.offset = buffer.size = 0
    for op in (op for graph in root.subgraphs for op in graph.operators):
        if op.largeCustomOptionsOffset:
            start, size = op.largeCustomOptionsOffset, op.largeCustomOptionsSize
            op.customOptions = np.frombuffer(model, np.uint8, size, start)
        op.largeCustomOptionsOffset = op.largeCustomOptionsSize = 0
    root.metadata = [x for x in root.metadata or () if x.name != _BEHIND]
    return root


def packed(root: Any) -> bytes:
    """A model as bytes; the object loses its contents, so that they are not there twice."""
    builder = _built(root)
    vars(root).clear()
    with memoryview(builder.Bytes) as content:
        return bytes(content[builder.Head() :])


def _built(root: Any) -> flatbuffers.Builder:
    parts = [len(graph.tensors) + len(graph.operators) for graph in root.subgraphs]
    size = sum(len(x.data) for x in root.buffers if x.data is not None)
    size += _ROOM + _ROOM_OF_EACH * (len(root.buffers) + sum(parts))
    builder = flatbuffers.Builder(min(size, flatbuffers.Builder.MAX_BUFFER_SIZE))
    for buffer in root.buffers:
        buffer.__class__ = _AlignedBuffer
    builder.Finish(root.Pack(builder), file_identifier=_IDENTIFIER)
    return builder


class _AlignedBuffer(schema.BufferT):
    """A buffer that begins at a multiple of 16 bytes, as LiteRT asks for."""

    def Pack(self, builder: Any) -> Any:  # noqa: N802
        vector = None
        if self.data is not None and len(self.data):
            data = memoryview(self.data).cast("B")
            builder.StartVector(1, len(data), _ALIGNMENT)
            builder.head -= len(data)
            builder.Bytes[builder.head : builder.head + len(data)] = data
            vector = builder.EndVector()
        schema.BufferStart(builder)
        if vector is not None:
            schema.BufferAddData(builder, vector)
        return schema.BufferEnd(builder)


def share_buffers(root: Any) -> None:
    """Lets constants with the same bytes have one buffer."""
    constants = collections.defaultdict(list)
    kept: set[int] = set()
    for graph in root.subgraphs:
        made = {i for op in graph.operators for i in (*op.outputs, *(op.intermediates or ()))}
        made.update((*graph.inputs, *graph.outputs))
        for i, tensor in enumerate(graph.tensors):
            constants[tensor.buffer].append(tensor)
            if i in made or tensor.isVariable:
                kept.add(tensor.buffer)
    known: dict[tuple[int, bytes], list[int]] = collections.defaultdict(list)
    for i, tensors in constants.items():
        buffer = root.buffers[i]
        if i in kept or buffer.data is None or not len(buffer.data):
            continue
        alike = known[len(buffer.data), bytes(buffer.data[:64])]
        same = next((j for j in alike if np.array_equal(root.buffers[j].data, buffer.data)), None)
        if same is None:
            alike.append(i)
            continue
        buffer.data = None
        for tensor in tensors:
            tensor.buffer = same
