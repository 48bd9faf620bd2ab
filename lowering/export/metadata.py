"""The metadata of TF Lite and ONNX models: a name, a description, labels of outputs.

In TF Lite it is a buffer (`tflite_metadata`), and labels are files of a zip archive behind the
model. In ONNX it is `metadata_props`, with labels as JSON.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from lowering.export import tflite_metadata
from lowering.export.descriptions import Array


class Metadata(TypedDict, total=False):
    """What a model says of itself; each part may be left out.

    Attributes:
      name: the name of the model.
      description: what it does, in a sentence or more.
      labels: the names of the classes along the last axis of an output: a sequence for the output
        that has as many, or a sequence for each by the name of the output.
    """

    name: str
    description: str
    labels: Sequence[str] | Mapping[str, Sequence[str]]


def check(metadata: Metadata | None, has_lines: bool = False) -> None:
    """Raises a ValueError for metadata with unknown parts, and a TypeError for wrong types.

    Args:
      metadata: the metadata.
      has_lines: whether its format has a label in each line, so that none can have several lines.
    """
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata is a dictionary, not {type(metadata).__name__}")
    known = list(Metadata.__annotations__)
    for key in metadata:
        if key not in known:
            raise ValueError(f"metadata has {key!r}; its parts are {', '.join(known)}")
    for key in ("name", "description"):
        if not isinstance(metadata.get(key, ""), str):
            raise TypeError(f"the {key} in metadata is a string, not {metadata.get(key)!r}")
    if isinstance(metadata.get("labels"), str):
        raise TypeError("the labels in metadata are a sequence of strings, not a string")
    if not has_lines:
        return
    given = metadata.get("labels", ())
    for of_output in given.values() if isinstance(given, Mapping) else [given]:
        for label in of_output:
            if len(str(label).splitlines()) > 1:
                raise ValueError(f"the label {label!r} has a line break; the file has one a line")


def labels(metadata: Metadata, outputs: Sequence[Array]) -> dict[str, list[str]]:
    """The labels of each output that has some.

    Raises:
      ValueError: if they belong to no output, or to several.
    """
    given = metadata.get("labels", {})
    sizes = {x.name: x.shape[-1] if x.shape else None for x in outputs}
    if not isinstance(given, Mapping):
        fitting = [name for name, size in sizes.items() if size == len(given)]
        if len(fitting) != 1:
            number = "several outputs have" if fitting else "no output has"
            hint = ". A dictionary has labels by the names of outputs" * bool(fitting)
            raise ValueError(
                f"there are {len(given)} labels, and {number} a last dimension of {len(given)}: "
                f"{', '.join(map(str, outputs))}{hint}"
            )
        given = {fitting[0]: given}
    for name, of_output in given.items():
        if name not in sizes:
            raise ValueError(f"labels are of {name!r}, but the outputs are {', '.join(sizes)}")
        if isinstance(sizes[name], int) and sizes[name] != len(of_output):
            raise ValueError(
                f"{len(of_output)} labels are given for {name!r}, whose last dimension is "
                f"{sizes[name]}"
            )
    return {name: list(map(str, of_output)) for name, of_output in given.items()}


def add_to_onnx(metadata: Metadata | None, model: Any) -> None:
    """Adds metadata to an `onnx_ir.Model`.

    Raises:
      ValueError: if labels belong to no output, or to several.
    """
    if not metadata:
        return
    outputs = [
        Array(x.name, x.dtype.numpy().name, tuple(getattr(d, "value", d) for d in x.shape))
        for x in model.graph.outputs
    ]
    by_output = labels(metadata, outputs)
    texts = {key: str(metadata.get(key, "")) for key in ("name", "description")}
    if by_output:
        texts["labels"] = json.dumps(by_output, ensure_ascii=False)
    model.doc_string = texts["description"]
    model.metadata_props.update({key: text for key, text in texts.items() if text})


def in_tflite(metadata: Metadata | None, model: bytes) -> bytes:
    """A TF Lite model with metadata.

    Raises:
      ValueError: if labels belong to no output, or to several.
    """
    if not metadata:
        return model
    from tensorflow.lite.python import schema_py_generated as schema

    from lowering.export.readers import of_tflite
    from lowering.export.tflite_objects import packed, unpacked

    signatures = list(of_tflite(model).signatures.values())
    outputs = {x.name: x for signature in signatures for x in signature.outputs}
    by_output = labels(metadata, list(outputs.values()))
    files = {name: f"{name}_labels.txt" for name in by_output}
    root = unpacked(model)
    content = schema.BufferT()
    content.data = tflite_metadata.written(metadata, signatures, files)
    entry = schema.MetadataT()
    entry.name, entry.buffer = tflite_metadata.BUFFER, len(root.buffers)
    root.buffers.append(content)
    root.metadata = [*(root.metadata or ()), entry]
    root.description = metadata.get("description", "").encode() or root.description
    archive = io.BytesIO(packed(root))
    if files:
        # Files are stored, not compressed: phones map them to memory.
        with zipfile.ZipFile(archive, "a") as made:
            for name, file in files.items():
                made.writestr(zipfile.ZipInfo(file), "\n".join(by_output[name]))
    return archive.getvalue()
