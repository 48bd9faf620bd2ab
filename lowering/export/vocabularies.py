"""Reads tokenizers of the two kinds that LiteRT-LM takes: SentencePiece and Hugging Face."""

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

# The numbers of fields in SentencePiece's `ModelProto`: its pieces, and the text of each.
_PIECES = 1
_TEXT = 1


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A tokenizer.

    Attributes:
      data: the file.
      suffix: ".model" for SentencePiece, ".json" for that of Hugging Face.
      tokens: the numbers of its tokens, by their text.
    """

    data: bytes
    suffix: str
    tokens: dict[str, int]

    @property
    def size(self) -> int:
        """One more than the largest number of a token."""
        return max(self.tokens.values()) + 1

    def number(self, token: int | str) -> int:
        """The number of a token that is given by its number or its text.

        Raises:
          ValueError: if there is no such token.
        """
        if isinstance(token, str) and token in self.tokens:
            return self.tokens[token]
        # In Python True is a number, too.
        is_number = not isinstance(token, str | bool) and isinstance(token, int | np.integer)
        if is_number and int(token) in range(self.size):
            return int(token)
        raise ValueError(f"the tokenizer has no token {token!r}; it has {self.size}")


def load(tokenizer: Any) -> Tokenizer:
    """Reads a tokenizer.

    Args:
      tokenizer: the path of a file of SentencePiece or of a `tokenizer.json`, its content, or an
        object of `sentencepiece` or `tokenizers`.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: if it is neither.
    """
    if hasattr(tokenizer, "serialized_model_proto"):
        data = tokenizer.serialized_model_proto()
    elif hasattr(tokenizer, "to_str"):
        data = tokenizer.to_str().encode()
    elif isinstance(tokenizer, bytes):
        data = tokenizer
    elif isinstance(tokenizer, str | os.PathLike):
        data = pathlib.Path(tokenizer).read_bytes()
    else:
        raise TypeError(f"tokenizer is a path, the content of one or an object, not {tokenizer!r}")
    if data.lstrip()[:1] == b"{":
        return Tokenizer(data, ".json", _of_json(data))
    return Tokenizer(data, ".model", _of_sentencepiece(data))


def _of_json(data: bytes) -> dict[str, int]:
    try:
        content = json.loads(data)
        vocabulary = content["model"]["vocab"]
        if isinstance(vocabulary, list):
            vocabulary = {token: i for i, (token, _) in enumerate(vocabulary)}
        added = {token["content"]: token["id"] for token in content.get("added_tokens") or ()}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the tokenizer is no tokenizer.json of Hugging Face: {error!r}"
        ) from error
    if not vocabulary and not added:
        raise ValueError("the tokenizer is a tokenizer.json without tokens")
    return {**vocabulary, **added}


def _of_sentencepiece(data: bytes) -> dict[str, int]:
    pieces = _fields(data, _PIECES)
    texts = [next(_fields(piece, _TEXT), b"").decode(errors="replace") for piece in pieces]
    if not texts:
        raise ValueError("the tokenizer is no model of SentencePiece, and no tokenizer.json")
    return {text: i for i, text in enumerate(texts)}


def _fields(message: bytes, number: int) -> Iterator[bytes]:
    """The values of a field of a message of protocol buffers, whose type need not be known."""
    from google.protobuf import empty_pb2, unknown_fields
    from google.protobuf import message as messages

    try:
        parsed = empty_pb2.Empty.FromString(message)
    except messages.DecodeError as error:
        raise ValueError(
            "the tokenizer is no model of SentencePiece, and no tokenizer.json"
        ) from error
    for field in unknown_fields.UnknownFieldSet(parsed):
        if field.field_number == number and isinstance(field.data, bytes):
            yield field.data
