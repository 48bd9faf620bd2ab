"""Frozen graphs: variables are constants."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import convert_to_constants, op_def_registry

from lowering.export import signatures

# Variables from this size on do not become constants, which each rewrite of a graph would copy.
LARGE_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A frozen graph.

    Attributes:
      graph: the graph.
      graph_def: its definition.
      inputs: the placeholders, by the name of the input.
      outputs: the results, by name, in the order of what the function returns.
      variables: large variables by the names of their placeholders, which no constant has.
    """

    graph: Any
    graph_def: Any
    inputs: Mapping[str, tf.Tensor]
    outputs: Mapping[str, tf.Tensor]
    variables: Mapping[str, tf.Variable]


def frozen(concrete: Any) -> Frozen:
    """The frozen graph of a concrete function of TensorFlow."""
    graph_def, inputs, outputs, variables = _without_variables(concrete)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    found = {x.name: graph.get_tensor_by_name(x.name) for x in (*inputs, *outputs)}
    for x in inputs:
        found[x.name].set_shape(x.shape)
    return Frozen(
        graph,
        graph.as_graph_def(),
        {x.op.name: found[x.name] for x in inputs},
        signatures.named(concrete, [found[x.name] for x in outputs]),
        variables,
    )


class _Unread(float):
    """A zero in place of a large variable, with the shape and dtype of the variable."""

    def __new__(cls, variable: tf.Variable) -> "_Unread":
        zero = super().__new__(cls, 0)
        zero.shape, zero.dtype = tuple(variable.shape), variable.dtype.as_numpy_dtype
        return zero

    shape: tuple[int, ...]
    dtype: Any


class _Converter(convert_to_constants._FunctionConverterDataInEager):
    """Reads the variables that become constants, except the large ones."""

    def _eval(self, tensor: Any) -> Any:
        is_large = isinstance(tensor, tf.Variable) and _is_large(tensor)
        return _Unread(tensor) if is_large else super()._eval(tensor)


def _is_large(variable: tf.Variable) -> bool:
    size = variable.shape.num_elements() * variable.dtype.size
    return variable.dtype.is_floating and size >= LARGE_BYTES


def _without_variables(
    concrete: Any,
) -> tuple[Any, list[tf.Tensor], list[tf.Tensor], dict[str, tf.Variable]]:
    """The definition of a graph with constants for variables; its inputs, results and the variables
    that are large.

    These are the steps of `convert_variables_to_constants_v2`, but for the last, which makes a
    function of the graph. That would register the functions that the graph calls for the whole
    process. TensorFlow's optimizer gives different functions of different graphs the same names,
    so the next graph could not be frozen.
    """
    data = _Converter(func=concrete, lower_control_flow=False, aggressive_inlining=False)
    graph_def, constants = convert_to_constants._replace_variables_by_constants(data)
    captured = concrete.graph.internal_captures
    are_constant = {captured[i].name for i in constants}
    inputs = [x for x in concrete.inputs if x.name not in are_constant and x.dtype != tf.resource]
    outputs = [x for x in concrete.outputs if x.dtype != tf.resource]
    keep_needed(graph_def.node, [x.op.name for x in (*inputs, *outputs)])
    by_handle = {id(v.handle): v for v in concrete.graph.variables}
    large = {
        placeholder.op.name: by_handle[id(handle)]
        for handle, placeholder in concrete.graph.captures
        if id(handle) in by_handle and _is_large(by_handle[id(handle)])
    }
    for node in graph_def.node:
        if node.name in large:
            node.op = "Placeholder"
            del node.attr["value"]
            node.attr["shape"].shape.CopyFrom(large[node.name].shape.as_proto())
    # The optimizer knows that nothing waits for a constant; it does not know that of these.
    reads = {x.name for x in graph_def.node if x.op == "Identity" and x.input[0] in large}
    for node in graph_def.node:
        for reference in [x for x in node.input if x[1:] in reads and x.startswith("^")]:
            node.input.remove(reference)
    return graph_def, inputs, outputs, large


def node_name(reference: str) -> str:
    """The name of the node that an input of another node refers to."""
    return reference.removeprefix("^").partition(":")[0]


def keep_needed(nodes: Any, names: Iterable[str]) -> None:
    """Removes the nodes of a graph that those of some names do not depend on."""
    by_name = {node.name: node for node in nodes}
    left, needed = list(names), set()
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left += [node_name(x) for x in by_name[name].input]
    for i in reversed(range(len(nodes))):
        if nodes[i].name not in needed:
            del nodes[i]
    for node in nodes:
        # The nodes that it is to run beside; one that is not there is an error.
        places = node.attr["_class"].list.s if "_class" in node.attr else ()
        if any(place.decode().removeprefix("loc:@") not in needed for place in places):
            del node.attr["_class"]


def make_names_unique(graph_def: Any) -> None:
    """Prefixes the names of the nodes and arguments of each function with its name.

    In TF.js a name means one weight, even in several functions. TensorFlow's optimizer copies
    functions, so this runs after it.
    """
    for function in graph_def.library.function:
        name = function.signature.name
        renamed = {node.name: f"{name}/{node.name}" for node in function.node_def}
        # Names of arguments have no slashes.
        renamed.update((arg.name, f"{arg.name}__{name}") for arg in function.signature.input_arg)
        _rename(function, renamed)


def _rename(function: Any, renamed: Mapping[str, str]) -> None:
    """Gives new names to the nodes and arguments of a function."""

    def new(reference: str) -> str:
        is_control = reference.startswith("^")
        name, *rest = reference.removeprefix("^").split(":")
        return ("^" if is_control else "") + ":".join([renamed.get(name, name), *rest])

    for named in (*function.node_def, *function.signature.input_arg):
        named.name = renamed[named.name]
    replace_references(function, new)
    for key, reference in list(function.control_ret.items()):
        function.control_ret[key] = new(reference)


def replace_references(function: Any, new: Callable[[str], str]) -> None:
    """Replaces each reference to a result, in the inputs of nodes and the results of a function."""
    for node in function.node_def:
        node.input[:] = map(new, node.input)
    for key, reference in list(function.ret.items()):
        function.ret[key] = new(reference)


def give_results_nodes(function: Any) -> None:
    """Makes each result of a function the output of a separate node.

    TF.js stores one result of the function for each node, and so loses the others. TensorFlow's
    optimizer removes such nodes.
    """
    for arg in function.signature.output_arg:
        node = function.node_def.add(op="Identity", name=f"{function.signature.name}/{arg.name}")
        node.input.append(function.ret[arg.name])
        node.attr["T"].type = arg.type
        function.ret[arg.name] = f"{node.name}:output:0"


def number_outputs(function: Any) -> None:
    """Numbers each reference to a result of an op among all results of that op.

    See `tfjs.quirks.numbers_of_results`.
    """
    nodes = {node.name: node for node in function.node_def}

    def numbered(reference: str) -> str:
        name, *rest = reference.split(":")
        if name not in nodes or len(rest) != 2:
            return reference
        result, number = rest
        return f"{name}:{result}:{_first_number(nodes[name], result) + int(number)}"

    replace_references(function, numbered)


def _first_number(node: Any, result: str) -> int:
    """How many results of an op precede those with a name."""
    op_def = op_def_registry.get(node.op)
    args = list(op_def.output_arg) if op_def else []
    names = [arg.name for arg in args]
    # A fused op has one result, under the name of the last op that is in it.
    before = args[: names.index(result)] if result in names else []
    return sum(_count(node, arg) for arg in before)


def _count(node: Any, arg: Any) -> int:
    """How many results of an op have the name of one argument of its definition."""
    if arg.number_attr:
        return node.attr[arg.number_attr].i
    return len(node.attr[arg.type_list_attr].list.type) if arg.type_list_attr else 1
