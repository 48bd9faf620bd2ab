"""Side effects of the ops of a graph."""

from collections.abc import Iterable
from typing import Any

from tensorflow.python.framework import op_def_registry

# The ops that call functions of the graph, whose own ops count.
_CALLING = frozenset(("StatefulPartitionedCall", "While", "If", "Case"))
# Stateful ops that read variables, or name them.
_READING = frozenset(("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp"))
_WRITING = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "ResourceStrided")
# Stateful ops that `tf.vectorized_map` may run once for all elements, as if element by element.
_AT_ONCE = ("Assert", "Random", "TruncatedNormal", "ParameterizedTruncatedNormal", "Multinomial")
# The ops whose results have as many elements as their operands say.
_OF_ANY_SIZE = frozenset(
    ("DenseToDenseSetOperation", "DynamicPartition", "ListDiff", "Unique", "UniqueV2", "Where")
)


def ops(graph: Any) -> set[str]:
    """The types of the ops in a graph and in the functions that it calls."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return {node.op for node in nodes}


def makes_any_size(graph: Any) -> bool:
    """Whether a graph has values whose sizes depend on those of its elements.

    `tf.vectorized_map` may take these sizes for equal in all elements.
    """
    return not _OF_ANY_SIZE.isdisjoint(ops(graph))


def stateful_ops(graph: Any) -> Iterable[str]:
    """The types of the stateful ops in a graph and in the functions that it calls."""
    for op in ops(graph) - _CALLING:
        found = op_def_registry.get(op)
        if found is None or found.is_stateful:
            yield op


def writing(stateful: Iterable[str]) -> list[str]:
    """The stateful ops that write to variables."""
    return sorted(op for op in stateful if op.startswith(_WRITING))


def acting(stateful: Iterable[str]) -> list[str]:
    """The stateful ops that have side effects, or may have them."""
    return sorted(set(stateful) - _READING)


def acting_in_turn(stateful: Iterable[str]) -> list[str]:
    """The stateful ops that have to run element by element."""
    return [op for op in acting(stateful) if not op.startswith(_AT_ONCE)]
