"""Traces what a converter or runtime refuses back to the primitive and the user's line.

Converters speak of ops. If the error of a converter names a type of op, the equations that such ops
come from are added to it. To find these, the function is lowered once more.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator

import tensorflow as tf

from lowering.errors import LoweringError, UnsupportedError
from lowering.export import listing
from lowering.export.entry import Entry
from lowering.ops import kernels

# How many lines a message has.
_MOST = 3

_VERSION = re.compile(r"v\d+$")


@contextlib.contextmanager
def located(entries: Iterable[Entry]) -> Iterator[None]:
    """A context in which an UnsupportedError that has ops gets their primitives and lines.

    Args:
      entries: the entries that are converted or run.
    """
    try:
        yield
    except UnsupportedError as error:
        if error.located:
            raise
        found = _origins(str(error), entries)
        if not found:
            raise
        raise UnsupportedError.with_location(f"{error}. {found}") from error


def _origins(message: str, entries: Iterable[Entry]) -> str:
    """A sentence on where the ops that a message has come from; empty if none is known."""
    # The types of ops have capitals, unlike the words of a sentence.
    words = {_plain(word) for word in re.findall(r"\w+", message) if word.lower() != word}
    found: dict[str, None] = {}
    for entry in entries:
        for row in _rows(entry):
            if row.primitive and _plain(row.op) in words:
                found[f"{row.op} of {row.primitive} at {row.source}"] = None
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"The program has {', '.join(list(found)[:_MOST])}{more}" if found else ""


def _rows(entry: Entry) -> list[listing.Line]:
    """The ops of an entry, which is lowered once more."""
    again = tf.function(entry.function.python_function, autograph=False)
    try:
        with kernels.unchecked():
            return listing.lines_of(lambda: again.get_concrete_function(*entry.specs))
    except LoweringError:
        return []


def _plain(name: str) -> str:
    """The name of an op in one spelling, the same for BATCH_MATMUL and BatchMatMulV2."""
    return _VERSION.sub("", name.replace("_", "").lower())
