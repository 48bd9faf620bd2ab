"""The shapes of the arguments of branches, for tf2onnx.

tf2onnx takes the shapes of the first inputs of an If for those of the arguments of its branches.
The first input is the condition, so each argument gets the shape of the argument before it. Here
each argument is given twice: the copy that comes first gets a wrong shape, and nothing uses it.

tf2onnx may also convert a function before the one that calls it. It then takes the shapes that the
function states, which TensorFlow's optimizer has left out in some. They are written here.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph

_IFS = ("If", "StatelessIf")
_BRANCHES = ("then_branch", "else_branch")
_SHAPES = "_output_shapes"


def give_shapes(graph_def: Any) -> None:
    """Changes a graph so that tf2onnx finds the shapes of the arguments of branches.

    Args:
      graph_def: the graph, in which each function has one caller.
    """
    functions = {function.signature.name: function for function in graph_def.library.function}
    bodies = graph_def.node, *(function.node_def for function in functions.values())
    ifs = [node for nodes in bodies for node in nodes if node.op in _IFS]
    if not ifs:
        return
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        _write_shapes(graph, functions)
    for node in ifs:
        for branch in _BRANCHES:
            _repeat_arguments(functions[node.attr[branch].func.name])
        condition, *inputs = node.input
        node.input[:] = [condition, *(x for x in inputs for x in ([x] if x[0] == "^" else [x, x]))]
        types = node.attr["Tin"].list.type
        types[:] = [dtype for dtype in types for _ in range(2)]


def _write_shapes(graph: Any, functions: Mapping[str, Any]) -> None:
    """Writes the shapes of inputs into the functions that a graph calls and that lack them."""
    for op in graph.get_operations():
        inputs = op.inputs[1:] if op.type in _IFS else op.inputs
        for value in op.node_def.attr.values():
            function = functions.get(value.func.name)
            if function is None:
                continue
            for i, x in enumerate(inputs):
                shapes = function.arg_attr[i].attr[_SHAPES].list.shape
                if x.shape.rank is not None and (not shapes or shapes[0].unknown_rank):
                    del shapes[:]
                    shapes.append(x.shape.as_proto())
            _write_shapes(function_def_to_graph.function_def_to_graph(function), functions)


def _repeat_arguments(function: Any) -> None:
    """Puts a copy that nothing uses before each argument of a function."""
    arguments, attributes = list(function.signature.input_arg), dict(function.arg_attr)
    repeated = type(function)()
    for i, argument in enumerate(arguments):
        repeated.signature.input_arg.add(name=f"{argument.name}__unused", type=argument.type)
        repeated.signature.input_arg.add().CopyFrom(argument)
        if i in attributes:
            repeated.arg_attr[2 * i + 1].CopyFrom(attributes[i])
    function.signature.ClearField("input_arg")
    function.ClearField("arg_attr")
    function.MergeFrom(repeated)
