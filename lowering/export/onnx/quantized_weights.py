"""Prepares weights for onnxruntime's quantizer of all numbers.

It quantizes a weight once, for the node that it meets first: a product has a scale for each column,
a lookup one for all rows. So a weight that both read becomes two. What graphs within a graph read
needs the same care, for the quantizer looks at one graph at a time.
"""

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import onnx

# Which input is the weight, by op.
_WEIGHTS = {"MatMul": 1, "Gemm": 1, "Conv": 1, "Gather": 0}


@dataclasses.dataclass(frozen=True)
class _Read:
    """An input of a node.

    Attributes:
      node: the node.
      index: which of the node's inputs it is.
      graph: the graph that has the node.
    """

    node: Any
    index: int
    graph: Any

    @property
    def name(self) -> str:
        """The name of the value."""
        name: str = self.node.input[self.index]
        return name

    def is_weight(self) -> bool:
        """Whether the value is the weight of the node."""
        return _WEIGHTS.get(self.node.op_type) == self.index


@dataclasses.dataclass(frozen=True)
class _Constant:
    """A constant.

    Attributes:
      tensor: its value.
      graph: the graph that has it.
      reads: where it is read.
    """

    tensor: Any
    graph: Any
    reads: Sequence[_Read]


def separate(model: Any) -> None:
    """Gives each kind of op that reads a weight its own copy, and subgraphs one of floats."""
    names = _names(model)
    for constant in _floats(model):
        by_kind = collections.defaultdict(list)
        inner = []
        for read in constant.reads:
            if read.is_weight():
                by_kind[read.node.op_type].append(read)
            elif read.graph is not constant.graph:
                inner.append(read)
        for reads in [*list(by_kind.values())[1:], inner] if by_kind else []:
            _copy(constant, reads, constant.graph, names)
    _pass_lookups_on(model, names)


def _pass_lookups_on(model: Any, names: set[str]) -> None:
    """Lets subgraphs read copies of the results of Gather nodes outside of them.

    The quantizer makes these integers, and dequantizes them only for nodes of the same graph.
    """
    inner = collections.defaultdict(list)
    for read in _reads(model.graph):
        inner[read.name].append(read)
    for graph in list(_graphs(model.graph)):
        for i, node in reversed(list(enumerate(graph.node))):
            name = node.output[0]
            reads = [x for x in inner[name] if x.graph is not graph]
            if node.op_type == "Gather" and reads:
                copied = _unique(name, names)
                graph.node.insert(i + 1, onnx.helper.make_node("Identity", [name], [copied]))
                for read in reads:
                    read.node.input[read.index] = copied


def _copy(constant: _Constant, reads: Sequence[_Read], graph: Any, names: set[str]) -> None:
    """Adds a copy of a constant to a graph for some of the nodes that read it."""
    if not reads:
        return
    tensor = graph.initializer.add()
    tensor.CopyFrom(constant.tensor)
    tensor.name = _unique(tensor.name, names)
    for read in reads:
        read.node.input[read.index] = tensor.name


def _unique(name: str, known: set[str]) -> str:
    """A name that is not in use yet."""
    found, number = name, 0
    while found in known:
        number += 1
        found = f"{name}_{number}"
    known.add(found)
    return found


def _floats(model: Any) -> list[_Constant]:
    """The constants of float32."""
    return [x for x in _constants(model) if x.tensor.data_type == onnx.TensorProto.FLOAT]


def _constants(model: Any) -> list[_Constant]:
    """All constants, each with a name of its own."""
    reads = collections.defaultdict(list)
    for read in _reads(model.graph):
        reads[read.name].append(read)
    return [
        _Constant(tensor, graph, reads[tensor.name])
        for graph in _graphs(model.graph)
        for tensor in graph.initializer
    ]


def _reads(graph: Any) -> Iterator[_Read]:
    """The inputs of all nodes of a graph and its subgraphs."""
    for each in _graphs(graph):
        for node in each.node:
            for index in range(len(node.input)):
                yield _Read(node, index, each)


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and its subgraphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _names(model: Any) -> set[str]:
    """The names of all values."""
    return {
        name
        for graph in _graphs(model.graph)
        for name in (
            *(x.name for x in (*graph.initializer, *graph.input)),
            *(x for node in graph.node for x in (*node.input, *node.output)),
        )
    }
