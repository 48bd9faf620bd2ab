"""The buffer TFLITE_METADATA of a TF Lite model, with what the model says of itself.

It is a flatbuffer in the format of `metadata_schema.fbs` of tflite-support, which MediaPipe and
Android Studio read. Numbers are the places of fields in the tables of this schema.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lowering.export.descriptions import Array, Signature
from lowering.export.packages import import_package

# The name of the buffer, its format, and the first version of readers that know all of it.
BUFFER = b"TFLITE_METADATA"
_IDENTIFIER = b"M001"
_READERS = "1.0.0"

# The fields of models, subgraphs, arrays and files.
_NAME, _DESCRIPTION, _SUBGRAPHS = 0, 1, 3
_INPUTS, _OUTPUTS = 2, 3
_FILES = 6
_KIND = 2

# The kind of a file with the labels along an axis.
_AXIS_LABELS = 2


def written(
    metadata: Mapping[str, Any], signatures: Sequence[Signature], files: Mapping[str, str]
) -> bytes:
    """The buffer.

    Args:
      metadata: a name and a description, if there are any.
      signatures: the functions of the model.
      files: the files with the labels of outputs, by their names.
    """
    flatbuffers = import_package("flatbuffers", "tflite")
    builder = flatbuffers.Builder(1024)

    def table(size: int, fields: Mapping[int, int], kind: int = 0) -> int:
        builder.StartObject(size)
        for place, offset in fields.items():
            builder.PrependUOffsetTRelativeSlot(place, offset, 0)
        if kind:
            builder.PrependInt8Slot(_KIND, kind, 0)
        return builder.EndObject()

    def vector(offsets: Sequence[int]) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()

    def tensor(array: Array) -> int:
        fields = {_NAME: builder.CreateString(array.name)}
        if array.name in files:
            file = table(4, {_NAME: builder.CreateString(files[array.name])}, _AXIS_LABELS)
            fields[_FILES] = vector([file])
        return table(7, fields)

    def subgraph(signature: Signature) -> int:
        inputs = vector([tensor(x) for x in signature.inputs])
        return table(7, {_INPUTS: inputs, _OUTPUTS: vector([tensor(x) for x in signature.outputs])})

    fields = {
        _SUBGRAPHS: vector([subgraph(x) for x in signatures]),
        7: builder.CreateString(_READERS),
    }
    for place, key in ((_NAME, "name"), (_DESCRIPTION, "description")):
        if metadata.get(key):
            fields[place] = builder.CreateString(metadata[key])
    builder.Finish(table(8, fields), _IDENTIFIER)
    return bytes(builder.Output())


def read(content: bytes) -> dict[str, str]:
    """The name and the description in a buffer, those that it has."""
    root = _root(content)
    texts = {"name": _text(root, _NAME), "description": _text(root, _DESCRIPTION)}
    return {key: text for key, text in texts.items() if text}


def label_files(content: bytes) -> dict[str, str]:
    """The files with the labels of outputs, by the names of the outputs."""
    found = {}
    for subgraph in _tables(_root(content), _SUBGRAPHS):
        for output in _tables(subgraph, _OUTPUTS):
            for file in _tables(output, _FILES):
                place = file.Offset(4 + 2 * _KIND)
                flags = import_package("flatbuffers", "tflite").number_types.Int8Flags
                if place and file.Get(flags, file.Pos + place) == _AXIS_LABELS:
                    found[_text(output, _NAME)] = _text(file, _NAME)
    return found


def _root(content: bytes) -> Any:
    flatbuffers = import_package("flatbuffers", "tflite")
    start = int.from_bytes(content[:4], "little")
    return flatbuffers.table.Table(content, start)


def _text(table: Any, place: int) -> str:
    offset = table.Offset(4 + 2 * place)
    return table.String(table.Pos + offset).decode(errors="replace") if offset else ""


def _tables(table: Any, place: int) -> Iterator[Any]:
    """The tables in a vector, which is a field of a table."""
    offset = table.Offset(4 + 2 * place)
    for i in range(table.VectorLen(offset) if offset else 0):
        yield type(table)(table.Bytes, table.Indirect(table.Vector(offset) + 4 * i))
