"""Reads the file of a SavedModel without TensorFlow, which takes seconds to import."""

import collections
import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from lowering.export import output_order, wire
from lowering.export.descriptions import Array, Description, Signature
from lowering.export.readers import size_of_files

# The dtypes of NumPy and TensorFlow by the numbers that DataType has for them.
DTYPES: Mapping[int, str] = dict(
    enumerate(
        (
            *("float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64"),
            *("int64", "bool", "qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16"),
            *("uint16", "complex128", "float16", "resource", "variant", "uint32", "uint64"),
            *("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"),
            *("float8_e5m2fnuz", "int4", "uint4", "int2", "uint2"),
        ),
        start=1,
    )
)

# Ops that hold a graph together and compute nothing.
_STRUCTURE = frozenset(
    ("PartitionedCall", "StatefulPartitionedCall", "Placeholder", "NoOp", "Identity", "Const")
)


@dataclasses.dataclass(frozen=True)
class _Node:
    """A NodeDef: its op, the names of its inputs, and the functions that it calls.

    Attributes:
      name: its name.
      op: its op.
      inputs: the names of its inputs.
      calls: the names of the functions in its attributes, by the names of these.
    """

    name: str
    op: str
    inputs: Sequence[str]
    calls: Mapping[str, Sequence[str]]


@dataclasses.dataclass(frozen=True)
class _Function:
    """A FunctionDef: the names of its arguments, and its nodes."""

    arguments: Sequence[str]
    nodes: Sequence[_Node]


@dataclasses.dataclass(frozen=True)
class _Graph:
    """A GraphDef: its nodes, and its functions by name."""

    nodes: Sequence[_Node]
    functions: Mapping[str, _Function]


def describe(path: pathlib.Path) -> Description:
    """What a SavedModel holds; its path is that of `saved_model.pb` or of the directory.

    Raises:
      ValueError: if the file is damaged.
    """
    folder = path if path.is_dir() else path.parent
    model = wire.fields((folder / "saved_model.pb").read_bytes())
    if not model[2]:
        raise ValueError("it has no graph")
    meta_graph = wire.fields(model[2][0])
    info = wire.fields(_only(meta_graph[1]))
    graph = _graph(_only(meta_graph[2]))
    written = output_order.read(folder)
    signatures, starts = {}, set()
    for name, found in sorted(wire.entries(meta_graph[5]).items()):
        # The loader adds a signature of its own, without inputs and outputs.
        if name.startswith("__"):
            continue
        of_signature = wire.fields(found)
        inputs, outputs = (wire.entries(of_signature[side]) for side in (1, 2))
        computing = {_node_of(tensor) for tensor in outputs.values()}
        starts |= computing
        signatures[name] = Signature(
            _in_order(graph, computing, inputs), _arrays(outputs, written.get(name, ()))
        )
    texts = {
        "tags": ", ".join(bytes(tag).decode() for tag in info[4]),
        "producer": f"TensorFlow {wire.text(info[5])}",
    }
    ops = _ops(graph, starts)
    return Description("saved_model", size_of_files(folder), signatures, ops, texts)


def _only(messages: Sequence[memoryview]) -> memoryview:
    """The message of a field that has at most one."""
    return messages[-1] if messages else memoryview(b"")


def _graph(message: memoryview) -> _Graph:
    found = wire.fields(message)
    functions = {}
    for function in wire.fields(_only(found[2]))[1]:
        of_function = wire.fields(function)
        declared = wire.fields(_only(of_function[1]))
        arguments = [wire.text(wire.fields(arg)[1]) for arg in declared[2]]
        functions[wire.text(declared[1])] = _Function(arguments, list(map(_node, of_function[3])))
    return _Graph(list(map(_node, found[1])), functions)


def _node(message: memoryview) -> _Node:
    found = wire.fields(message)
    calls = {}
    for name, value in wire.entries(found[5]).items():
        attribute = wire.fields(value)
        called = [*attribute[10], *wire.fields(_only(attribute[1]))[9]]
        if called:
            calls[name] = [wire.text(wire.fields(function)[1]) for function in called]
    inputs = [bytes(name).decode() for name in found[3]]
    return _Node(wire.text(found[1]), wire.text(found[2]), inputs, calls)


def _node_of(tensor: memoryview) -> str:
    """The name of the node that computes a tensor of a signature, a TensorInfo."""
    return wire.text(wire.fields(tensor)[1]).partition(":")[0]


def _arrays(tensors: Mapping[str, memoryview], order: Sequence[str] = ()) -> tuple[Array, ...]:
    return tuple(_array(name, tensors[name]) for name in output_order.ordered(tensors, order))


def _array(name: str, tensor: memoryview) -> Array:
    found = wire.fields(tensor)
    sizes = [
        wire.signed(wire.fields(dim)[1]) for shape in found[3] for dim in wire.fields(shape)[2]
    ]
    number = wire.signed(found[2])
    if number not in DTYPES:
        raise ValueError(f"{name!r} has the unknown dtype {number}")
    return Array(name, DTYPES[number], tuple(None if size < 0 else size for size in sizes))


def _in_order(
    graph: _Graph, computing: Iterable[str], inputs: Mapping[str, memoryview]
) -> tuple[Array, ...]:
    """The inputs of a signature in the order of the arguments of the function that was saved.

    A signature is a map. It calls a function with the inputs sorted by name, and that one calls
    the function that was saved, with its arguments in their own order.

    Args:
      graph: the graph.
      computing: the names of the nodes that compute the outputs of the signature.
      inputs: the tensors of its inputs by name.
    """
    names = {_node_of(tensor): name for name, tensor in inputs.items()}
    for call in graph.nodes:
        called = call.calls.get("f", ("",))
        wrapper = graph.functions.get(called[0])
        if call.name not in computing or wrapper is None:
            continue
        arguments = {
            argument: names[given]
            for argument, given in zip(wrapper.arguments, call.inputs, strict=False)
            if given in names
        }
        for node in wrapper.nodes:
            found = [arguments[given] for given in node.inputs if given in arguments]
            if sorted(found) == sorted(inputs):
                return tuple(_array(name, inputs[name]) for name in found)
    return _arrays(inputs)


def _ops(graph: _Graph, starts: Iterable[str]) -> Mapping[str, int]:
    """The ops in the functions that some nodes of a graph call, each function once."""
    starts = set(starts)
    pending = [node for node in graph.nodes if node.name in starts]
    ops: collections.Counter[str] = collections.Counter()
    seen: set[str] = set()
    while pending:
        node = pending.pop()
        if node.op not in _STRUCTURE:
            ops[node.op] += 1
        for called in (name for names in node.calls.values() for name in names):
            if called in graph.functions and called not in seen:
                seen.add(called)
                pending.extend(graph.functions[called].nodes)
    return ops
