"""Differences and quotients whose operands a converter would swap (`quirks.swapped_operands`)."""

from typing import Any

import tensorflow as tf

from lowering import targets
from lowering.ops.constants import constant
from lowering.targets.tflite import quirks

_ORDERED = frozenset({"Sub", "RealDiv", "Div"})
# Ops with a state that freezing a graph makes constant.
_READS = frozenset({"ReadVariableOp", "ResourceGather"})


def may_swap(op: str, operands: tuple[Any, ...]) -> bool:
    """Whether the converter may swap the operands of an op."""
    if op not in _ORDERED or not targets.current().has(quirks.swapped_operands):
        return False
    first, second = operands
    rank = second.shape.rank or 0
    # A transpose of fewer axes moves nothing.
    return rank > 1 and first.shape.rank in (0, rank) and is_constant(first)


def with_other_rank(op: str, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """An op on a constant with a number of axes with which the converter leaves it in its place."""
    value = tf.get_static_value(first)
    longer = tf.expand_dims(first, 0) if value is None else constant(value[None], first.dtype)
    result = getattr(tf.raw_ops, op)(x=longer, y=second)
    return result if first.shape.rank == 0 else tf.squeeze(result, [0])


def is_constant(x: tf.Tensor) -> bool:
    """Whether a tensor is constant once variables are frozen, or may be."""
    if not hasattr(x, "op"):  # It is of no graph.
        return True
    waiting, seen = [x], set()
    while waiting:
        tensor = waiting.pop()
        if not hasattr(tensor, "op"):  # A weight that a graph holds.
            continue
        op = tensor.op
        if id(op) in seen:
            continue
        seen.add(id(op))
        outside = {id(inner): outer for outer, inner in getattr(op.graph, "captures", ())}
        if id(tensor) in outside:
            waiting.append(outside[id(tensor)])
            continue
        if op.type == "Placeholder" or (op.op_def.is_stateful and op.type not in _READS):
            return False
        waiting += op.inputs
    return True
