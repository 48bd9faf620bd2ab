"""Lists the ops of a graph, with the primitives and lines that they come from."""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python.framework import op_callbacks

from lowering import jax_compat
from lowering.context import EQUATION, describe
from lowering.errors import UnsupportedError
from lowering.export.entry import Entry
from lowering.ops import kernels
from lowering.targets import Target

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
    """

    primitive: str
    source: str
    op: str
    dtype: str
    count: int


def lines(entry: Entry) -> list[Line]:
    """The ops of an entry, in the order of the program.

    Raises:
      UnsupportedError: for a primitive that the target cannot express.
    """
    return lines_of(lambda: entry.concrete)


def lines_of(make: Callable[[], Any]) -> list[Line]:
    """The ops of the graph that a function makes, in the order of the program."""
    counts: dict[tuple[str, str, str, str], int] = collections.Counter()

    def record(op: str, dtype: str) -> None:
        if op in _HIDDEN:
            return
        eqn = EQUATION.get()
        primitive = "" if eqn is None else eqn.primitive.name
        source = "" if eqn is None else jax_compat.source_line(eqn)
        counts[primitive, source, op, dtype] += 1

    with _each_op(record):
        make()
    return [
        Line(primitive, source, op, dtype, count)
        for (primitive, source, op, dtype), count in counts.items()
    ]


def refusals(make: Callable[[], Entry], target: Target) -> list[str]:
    """The messages of the errors for what a runtime would refuse of a function.

    Args:
      make: makes the entry of the function for the target.
      target: the target of the runtime.
    """
    found: dict[str, None] = {}

    def record(op: str, dtype: str) -> None:
        if target.lacks(op, dtype):
            reason = kernels.refusal(target, op, dtype)
            eqn = EQUATION.get()
            found[reason if eqn is None else describe(eqn, target, reason)] = None

    try:
        with kernels.unchecked(), _each_op(record):
            _ = make().concrete
    except UnsupportedError as error:
        # The program after the refused equation is not lowered.
        found[str(error)] = None
    return list(found)


@contextlib.contextmanager
def _each_op(record: Callable[[str, str], None]) -> Iterator[None]:
    """A context in which each op of a graph is recorded, with the dtype of its first operand."""

    def callback(
        op: str, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if graph is not None:
            tensors = [*inputs, *outputs]
            record(op, tensors[0].dtype.name if tensors else "")

    op_callbacks.add_op_callback(callback)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(callback)
