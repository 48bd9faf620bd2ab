"""Descriptions of exported files: inputs, outputs, signatures, ops, sizes and metadata."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

# The formats by the names of the command line, as people call them.
FORMATS = {
    "saved_model": "SavedModel",
    "tflite": "TF Lite",
    "onnx": "ONNX",
    "tfjs": "TF.js",
    "litertlm": "LiteRT-LM",
}

# The name of the only function of a SavedModel or TF Lite model.
DEFAULT = "serving_default"
# The signature of a language model that reads one token.
DECODE = "decode"


@dataclasses.dataclass(frozen=True)
class Array:
    """An input or output of a model.

    Attributes:
      name: its name.
      dtype: the name of its dtype.
      shape: its sizes; a size that is not known is a name or None.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name}: {self.dtype}[{sizes}]"


@dataclasses.dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a function of a model."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


@dataclasses.dataclass(frozen=True)
class Description:
    """What a file holds.

    Attributes:
      format: one of `FORMATS`.
      size: the bytes of the file, or of all files of a directory.
      signatures: inputs and outputs by the name of the function.
      ops: how often each op occurs.
      metadata: what else the file says of itself.
    """

    format: str
    size: int
    signatures: Mapping[str, Signature]
    ops: Mapping[str, int]
    metadata: Mapping[str, str]

    def __str__(self) -> str:
        return in_columns(self.rows())

    def rows(self) -> Iterator[tuple[str, str]]:
        """Titles and texts, a line each."""
        yield "format", FORMATS[self.format]
        yield "size", in_bytes(self.size)
        for name, signature in self.signatures.items():
            if len(self.signatures) > 1:
                yield "signature", name
            for title, arrays in (("input", signature.inputs), ("output", signature.outputs)):
                for array in arrays:
                    yield title, str(array)
        yield "ops", counted(self.ops)
        for title, text in self.metadata.items():
            yield title, text


def in_columns(rows: Iterable[tuple[str, str]]) -> str:
    """Lines of titles and texts, one below the other."""
    rows = list(rows)
    width = max(9, *(len(title) for title, _ in rows))
    return "\n".join(f"{title:<{width}} {text}" for title, text in rows)


def in_bytes(count: int) -> str:
    """A number of bytes as people write it."""
    for unit, of_unit in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= of_unit:
            return f"{count / of_unit:.3g} {unit}"
    return f"{count} bytes"


def counted(ops: Mapping[str, int]) -> str:
    """Ops and how many there are of each, the most frequent first."""
    if not ops:
        return "none"
    in_order = sorted(ops.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(name if count == 1 else f"{name} x {count}" for name, count in in_order)
    return f"{sum(ops.values())}: {listed}"
