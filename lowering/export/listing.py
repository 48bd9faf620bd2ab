"""What a graph is made of: its ops, the primitives and lines that they come from, who runs them."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

from tensorflow.python.framework import op_callbacks

from lowering import jax_compat
from lowering.core.interpreter import current_equation
from lowering.export.entry import Entry
from lowering.targets import CONSUMERS, tables

# Ops that every consumer takes or leaves out.
_COMMON = frozenset(
    "Const Identity IdentityN NoOp Placeholder PartitionedCall StatefulPartitionedCall".split()
)
_HIDDEN = frozenset({"Const", "Identity", "IdentityN", "NoOp", "Placeholder"})


@dataclasses.dataclass(frozen=True, order=True)
class Line:
    """Ops of a graph that have the same origin.

    Attributes:
      primitive: the JAX primitive that they come from.
      source: the user's line, as `file:line (function)`.
      op: the name of the op.
      dtype: the dtype of its first operand.
      count: how many there are.
      refused: the consumers that are known to lack the op for this dtype.
    """

    primitive: str
    source: str
    op: str
    dtype: str
    count: int
    refused: tuple[str, ...]


def lines(entry: Entry) -> list[Line]:
    """The ops of an entry, in the order of the program."""
    counts: dict[tuple[str, str, str, str], int] = collections.Counter()

    def record(op: str, inputs: Any, attrs: Any, outputs: Any, op_name: Any, graph: Any) -> None:
        eqn = current_equation()
        if graph is None or op in _HIDDEN:
            return
        tensors = [*inputs, *outputs]
        dtype = tensors[0].dtype.name if tensors else ""
        primitive = "" if eqn is None else eqn.primitive.name
        source = "" if eqn is None else jax_compat.source_line(eqn)
        counts[primitive, source, op, dtype] += 1

    op_callbacks.add_op_callback(record)
    try:
        _ = entry.concrete
    finally:
        op_callbacks.remove_op_callback(record)
    return [
        Line(primitive, source, op, dtype, count, tuple(refusing(op, dtype)))
        for (primitive, source, op, dtype), count in counts.items()
    ]


def refusing(op: str, dtype: str) -> Sequence[str]:
    """The consumers whose tables lack an op for a dtype."""
    if op in _COMMON or op.startswith(("While", "StatelessWhile", "If", "StatelessIf", "Case")):
        return []
    return [
        consumer
        for consumer in CONSUMERS
        if tables.table(consumer) and not _accepts(tables.table(consumer).get(op, ()), dtype)
    ]


def _accepts(dtypes: Any, dtype: str) -> bool:
    return any(accepted == dtype or accepted.startswith(f"{dtype}->") for accepted in dtypes)
