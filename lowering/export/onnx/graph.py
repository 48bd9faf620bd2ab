"""Walks a graph of TensorFlow, and adds nodes of ONNX for its ops."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.export.onnx import dtypes, folding
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import OF_ANY_VALUE, OPS, op
from lowering.export.onnx.values import kind_of
from lowering.ops.constants import is_computed

# A value that takes the place of a tensor: one of ONNX, a variable, the two parts of complex
# numbers, or a handle of TensorFlow, such as that of a table, which no rule takes.
Value = Any


def call(
    b: Builder, graph: Any, arguments: Sequence[Value], results: Sequence[Any] | None = None
) -> list[Value]:
    """The results of a function, whose ops are added.

    Args:
      b: the builder of the graph that calls it.
      graph: the graph of the function.
      arguments: the values of its inputs.
      results: the tensors that are computed, by default all results.
    """
    results = graph.outputs if results is None else results
    found = {x.name: value for x, value in zip(graph.inputs, arguments, strict=True)}
    for tf_op in needed(graph, results, found):
        operands = [found[x.name] for x in tf_op.inputs]
        for x, value in zip(tf_op.outputs, _results(b, tf_op, operands), strict=True):
            found[x.name] = value
    return [found[x.name] for x in results]


def needed(graph: Any, tensors: Iterable[Any], known: Iterable[str] = ()) -> list[Any]:
    """The ops that tensors depend on, in order, but for those of tensors that are known."""
    known = set(known)
    left, ops = [x for x in tensors if x.name not in known], set()
    while left:
        tf_op = left.pop().op
        if tf_op not in ops:
            ops.add(tf_op)
            left += [x for x in tf_op.inputs if x.name not in known]
    return [tf_op for tf_op in graph.get_operations() if tf_op in ops]


def _results(b: Builder, tf_op: Any, operands: Sequence[Value]) -> Sequence[Value]:
    """The values of the results of an op."""
    known = folding.computed(tf_op, operands)
    if known is not None:
        return [b.constants.value(array, tf_op.name) for array in known]
    rule = OPS.get(tf_op.type)
    if rule is None:
        raise _refused(tf_op)
    strange = [kind_of(x) for x in operands if not isinstance(x, ir.Value)]
    if strange and tf_op.type not in OF_ANY_VALUE:
        raise _refused(tf_op, strange[0])
    outer, b.name = b.name, tf_op.name
    start = len(b.nodes)
    results = rule(b, tf_op, *operands)
    b.name = outer
    if len(tf_op.outputs) == 1 and not isinstance(results, list):
        results = [results]
    for x, value in zip(tf_op.outputs, results, strict=True):
        if isinstance(value, ir.Value):
            _describe(b, x, value, start)
    return results


def _refused(tf_op: Any, operand: str = "") -> UnsupportedError:
    """The error for an op, or for one of a kind of operands."""
    kind = f"{tf_op.type} of {operand}" if operand else tf_op.type
    return UnsupportedError(f"{tf_op.name!r} is {kind}, which lowering does not write to ONNX")


def _describe(b: Builder, x: Any, value: ir.Value, start: int) -> None:
    """Gives a value the dtype and the shape of a tensor, and its name if it is new."""
    dtype = dtypes.of(x.dtype)
    if value.dtype is None:
        value.type = ir.TensorType(dtype)
    assert value.dtype == dtype, (x.op.type, value, dtype)
    if value.shape is None and x.shape.rank is not None:
        value.shape = ir.Shape(x.shape.as_list())
    node = value.producer()
    if node is not None and any(node is made for made in b.nodes[start:]):
        if len(node.outputs) == 1 or value is node.outputs[0]:
            node.name = b.names.unique(x.op.name)
        value.name = b.names.unique(x.name)


@op("Const")
def const(b: Builder, node: Any) -> Value:
    """A constant; in a graph within another one, too, it is one of the whole model."""
    computed = is_computed(node.node_def)
    return known(b, tf.make_ndarray(node.get_attr("value")), node.name, computed)


def known(b: Builder, array: np.ndarray, name: str, computed: bool = False) -> Value:
    """What stands for an array; `computed` says that it holds none of the user's parameters."""
    if array.dtype.kind == "c":
        return tuple(b.constants.value(part, name) for part in (array.real, array.imag))
    if array.dtype.kind == "O":
        raise UnsupportedError(
            f"{name!r} is a constant of strings, which lowering does not write to ONNX"
        )
    return b.constants.value(array, name, computed)


@op("Identity", "StopGradient", "PreventGradient", "Snapshot", "EnsureShape", of_any_value=True)
def identity(b: Builder, node: Any, x: Value) -> Value:
    """The operand."""
    return x


@op("IdentityN", of_any_value=True)
def identities(b: Builder, node: Any, *xs: Value) -> list[Value]:
    """The operands."""
    return list(xs)


@op("ReadVariableOp", of_any_value=True)
def read_variable(b: Builder, node: Any, variable: Any) -> Value:
    """The value of a variable, which an initializer holds without a copy."""
    if not isinstance(variable, tf.Variable):
        raise UnsupportedError(f"the variable that {node.name!r} reads is no longer there")
    if variable.dtype.is_complex:
        return known(b, variable.numpy(), variable.name.removesuffix(":0"))
    key = "variable", id(variable)
    if key not in b.shared:
        value = variable.read_value()
        if value.dtype == tf.bfloat16:  # Buffers do not have it.
            value = tf.bitcast(value, tf.uint16)
        array = np.asarray(memoryview(value))
        array = array.view(variable.dtype.as_numpy_dtype).reshape(variable.shape)
        name = variable.name.removesuffix(":0")
        b.shared[key] = b.constants.tensor(ir.Tensor(array), name), variable
    return b.shared[key][0]


@op("PartitionedCall", "StatefulPartitionedCall", of_any_value=True)
def function_call(b: Builder, node: Any, *operands: Value) -> list[Value]:
    """The results of a function, which is inlined."""
    return call(b, function_graph(node, "f"), operands)


def function_graph(node: Any, attribute: str) -> Any:
    """The graph of a function that an op calls."""
    name = node.get_attr(attribute).name
    return node.graph._get_function(name).graph
