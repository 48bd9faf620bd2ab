"""Large weights outside of their graph, so that a rewrite of the graph copies none of them.

In the graph a placeholder stands for each variable. What the graph computes of weights alone is a
weight, too; its numbers are computed when they are written, one weight after the other.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from lowering.export.frozen import keep_needed, node_name
from lowering.export.weights import LARGE_BYTES

# Ops whose results are numbers of their first operand.
_KEEPING_NUMBERS = ("Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "Transpose")
# The bytes of the numbers that TF.js computes with.
_BYTES = 4


@dataclasses.dataclass(frozen=True)
class Large:
    """A weight outside of its graph.

    Attributes:
      shape: its shape.
      array: returns its numbers.
    """

    shape: tuple[int, ...]
    array: Callable[[], np.ndarray]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def T(self) -> "Large":  # noqa: N802, as of an array
        """The weight with its axes reversed."""
        return Large(self.shape[::-1], lambda: self.array().T)

    def __mul__(self, factor: np.ndarray) -> "Large":
        """The weight times a factor, which broadcasts to its shape."""
        return Large(self.shape, lambda: self.array() * factor)


def of_variables(variables: Mapping[str, tf.Variable]) -> dict[str, Large]:
    """The values of variables, by the names of their placeholders."""
    return {name: Large(tuple(v.shape), v.numpy) for name, v in variables.items()}


def of_constants(graph_def: Any) -> dict[str, Large]:
    """The large constants of 8 and 16 bits, which TF.js lacks, by their names.

    TensorFlow's optimizer leaves their casts in the graph, as these take more bytes.
    """
    found = {}
    for node in graph_def.node:
        if node.op == "Const" and tf.as_dtype(node.attr["dtype"].type).size < _BYTES:
            value = node.attr["value"].tensor
            shape = tuple(dim.size for dim in value.tensor_shape.dim)
            if math.prod(shape) * _BYTES > LARGE_BYTES:
                found[node.name] = Large(shape, functools.partial(tf.make_ndarray, value))
    return found


def folded(
    graph_def: Any, weights: Mapping[str, Large], results: Iterable[str]
) -> dict[str, Large]:
    """Replaces nodes that depend on weights alone by constants, whose values are computed lazily.

    Args:
      graph_def: the graph, which is changed.
      weights: large weights by the names of their placeholders, or of their constants.
      results: the names of nodes that are not removed.

    Returns:
      The large weights that the changed graph reads, by the names of the constants.
    """
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    nodes = {node.name: node for node in graph_def.node}
    # The weights that a node depends on, by name of the node, if it depends on constants alone.
    sources: dict[str, frozenset[str]] = {}
    for op in graph.get_operations():
        found = _sources(op, nodes[op.name], weights, sources)
        if found is not None:
            sources[op.name] = found
    is_read = {
        name
        for node in graph_def.node
        if node.name not in sources
        for name in map(node_name, node.input)
    }
    kept = {}
    for name, of_name in sources.items():
        if of_name and (name in is_read or name in results):
            x = graph.get_operation_by_name(name).outputs[0]
            compute = functools.partial(_computed, graph, name, of_name, weights)
            kept[name] = Large(tuple(x.shape), weights[name].array if name in weights else compute)
            node, dtype = nodes[name], x.dtype.as_datatype_enum
            node.op = "Const"
            del node.input[:]
            node.attr.clear()
            node.attr["dtype"].type = dtype
    keep_needed(graph_def.node, results)
    return kept


def _sources(
    op: Any, node: Any, weights: Mapping[str, Large], known: Mapping[str, frozenset[str]]
) -> frozenset[str] | None:
    """The weights that a node depends on; None if it cannot be computed from weights alone.

    Also None if the result is larger than those weights. `known` has the weights of the nodes
    before it.
    """
    if op.name in weights:
        return frozenset([op.name])
    if op.type == "Const":
        return frozenset()
    op_def = op_def_registry.get(op.type)
    is_pure = op_def is not None and not op_def.is_stateful and len(op.outputs) == 1
    calls = any(attr.HasField("func") or attr.list.func for attr in node.attr.values())
    if not is_pure or calls or not node.input or not all(name in known for name in node.input):
        return None
    found = frozenset().union(*(known[name] for name in node.input))
    (x,) = op.outputs
    if not x.shape.is_fully_defined():
        return None
    if x.shape.num_elements() > sum(weights[name].size for name in found):
        return None
    # Integers stay so in the file, as long as they are the same numbers.
    is_integer = any(op.graph.get_tensor_by_name(f"{name}:0").dtype.is_integer for name in found)
    return None if is_integer and op.type not in _KEEPING_NUMBERS else found


def _computed(
    graph: Any, name: str, sources: Iterable[str], weights: Mapping[str, Large]
) -> np.ndarray:
    """The value of a node that depends on weights alone."""
    given = {f"{source}:0": weights[source].array() for source in sources}
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run(f"{name}:0", given)
