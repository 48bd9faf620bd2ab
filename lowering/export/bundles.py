"""Reads `.litertlm` files: a header with the positions of sections, and the sections.

A section is a TF Lite model, a tokenizer, or the metadata of a language model.
"""

import dataclasses
import pathlib
import struct
from collections.abc import Iterator
from typing import Any

from lowering.export.descriptions import Description
from lowering.export.packages import import_package

# The first bytes of a file.
MAGIC = b"LITERTLM"

_EXTRA = "litertlm"
# Where the header begins, and where its end is written.
_HEADER = 32
_HEADER_END = 24

_TOKENIZERS = {"SP_Tokenizer": "SentencePiece", "HF_Tokenizer_Zlib": "Hugging Face"}


def described(path: pathlib.Path) -> Description:
    """What a file holds: the signatures and ops of its model, and how LiteRT-LM calls it."""
    from lowering.export import readers

    with path.open("rb") as file:
        sections = list(_sections(file))
        model = readers.of_tflite(_content(file, sections, "TFLiteModel"))
        metadata = _metadata(_content(file, sections, "LlmMetadataProto"))
    tokenizers = [_TOKENIZERS[kind] for kind, _, _ in sections if kind in _TOKENIZERS]
    return dataclasses.replace(
        model,
        format="litertlm",
        size=path.stat().st_size,
        metadata={"tokenizer": ", ".join(tokenizers), **metadata},
    )


def model_of(path: pathlib.Path) -> bytes:
    """The TF Lite model of a file.

    Raises:
      ValueError: if there is none.
      ImportError: if the extra `litertlm` is not installed.
    """
    with path.open("rb") as file:
        return _content(file, list(_sections(file)), "TFLiteModel")


def _sections(file: Any) -> Iterator[tuple[str, int, int]]:
    """The kind of each section, where it begins and where it ends."""
    schema = import_package("litert_lm_builder.litertlm_header_schema_py_generated", _EXTRA)
    kinds = {value: name for name, value in vars(schema.AnySectionDataType).items()}
    file.seek(_HEADER_END)
    (end,) = struct.unpack("<Q", file.read(8))
    file.seek(_HEADER)
    header = file.read(end - _HEADER)
    found = schema.LiteRTLMMetaData.GetRootAs(header, 0).SectionMetadata()
    for i in range(found.ObjectsLength()):
        section = found.Objects(i)
        yield kinds[section.DataType()], section.BeginOffset(), section.EndOffset()


def _content(file: Any, sections: list[tuple[str, int, int]], kind: str) -> bytes:
    """The bytes of the only section of a kind."""
    places = [(begin, end) for found, begin, end in sections if found == kind]
    if len(places) != 1:
        raise ValueError(f"there are {len(places)} sections of {kind}, not one")
    ((begin, end),) = places
    file.seek(begin)
    content: bytes = file.read(end - begin)
    if len(content) != end - begin:
        raise ValueError(f"the file ends within the section of {kind}")
    return content


def _metadata(content: bytes) -> dict[str, str]:
    """What the metadata of a language model says, by titles."""
    protos = import_package("litert_lm_builder.runtime.proto.llm_metadata_pb2", _EXTRA)
    found = protos.LlmMetadata.FromString(content)
    roles = [role.name for role, _ in found.prompt_templates.ListFields()]
    texts = {
        "capacity": f"{found.max_num_tokens} tokens",
        "start": _token(found.start_token) if found.HasField("start_token") else "",
        "stop": ", ".join(map(_token, found.stop_tokens)),
        "templates": "Jinja" if found.jinja_prompt_template else ", ".join(roles),
    }
    return {title: text for title, text in texts.items() if text}


def _token(token: Any) -> str:
    """A token by its text or its numbers."""
    return repr(token.token_str) if token.token_str else " ".join(map(str, token.token_ids.ids))
