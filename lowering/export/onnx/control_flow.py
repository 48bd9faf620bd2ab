"""Loops and branches."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.graph import call, function_graph, needed
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of, dtype_of, kind_of


@op("If", "StatelessIf", of_any_value=True)
def branch(b: Builder, node: Any, condition: ir.Value, *operands: Any) -> list[Any]:
    """One of two functions; both see the values around them."""
    graphs = [function_graph(node, name) for name in ("then_branch", "else_branch")]
    return _if(b, condition, [lambda inner, g=g: call(inner, g, operands) for g in graphs])


@op("Case", "StatelessCase", of_any_value=True)
def case(b: Builder, node: Any, index: ir.Value, *operands: Any) -> list[Any]:
    """One of several functions, by a binary tree of Ifs; the last is for other numbers."""
    graphs = [node.graph._get_function(f.name).graph for f in node.get_attr("branches")]
    # Beneath zero is the last one, too.
    last = b.like(index, len(graphs) - 1)
    index = b.op("Where", b.op("Less", index, b.like(index, 0)), last, index)

    def choose(b: Builder, low: int, high: int) -> list[Any]:
        if high - low == 1:
            return call(b, graphs[low], operands)
        middle = (low + high) // 2
        branches = [
            lambda inner: choose(inner, low, middle),
            lambda inner: choose(inner, middle, high),
        ]
        return _if(b, b.op("Less", index, b.like(index, middle)), branches)

    return choose(b, 0, len(graphs))


def _if(b: Builder, condition: ir.Value, branches: Sequence[Any]) -> list[ir.Value]:
    """The results of an If, of functions that add the ops of each branch to a builder."""
    made = []
    for branch in branches:
        inner = b.inner()
        made.append(_graph(inner, [], branch(inner)))
    outputs = b.ops(
        "If", condition, outputs=len(made[0].outputs), then_branch=made[0], else_branch=made[1]
    )
    for output, x, y in zip(outputs, made[0].outputs, made[1].outputs, strict=True):
        output.type = x.type
        if x.shape is not None and x.shape == y.shape:
            output.shape = x.shape
    return list(outputs)


@op("While", "StatelessWhile", of_any_value=True)
def loop(b: Builder, node: Any, *operands: Any) -> list[Any]:
    """A loop. It captures what is loop-invariant, and does not compute what nothing reads.

    ONNX asks for the condition before the first iteration, and in each for the next one; of a loop
    that counts, for the number of iterations instead. Its condition is true all the time: it may be
    left out, but then the reference implementation of ONNX has no iteration.
    """
    test, body = function_graph(node, "cond"), function_graph(node, "body")
    carried = _carried(node, test, body)
    count = _count(b, test, body, operands)
    inner = b.inner()
    iteration = _parameter(inner, "iteration", dtypes.INT64, ())
    given = _parameter(inner, "condition", dtypes.BOOL, ())
    arguments = list(operands)
    if count is not None and not _is_used(node, count.index):
        carried.remove(count.index)
        arguments[count.index] = _number(inner, operands[count.index], iteration, count.step)
    states = []
    for i in carried:
        _check(b, [operands[i]])
        shape = body.inputs[i].shape
        sizes = None if shape.rank is None else shape.as_list()
        states.append(_parameter(inner, "state", dtype_of(operands[i]), sizes))
        arguments[i] = states[-1]
    results = call(inner, body, arguments, [body.outputs[i] for i in carried])
    following = list(arguments)
    for i, x in zip(carried, results, strict=True):
        following[i] = x
    more, first = given, b.constant(True)
    if count is None:
        (more,) = call(inner, test, following)
        (first,) = call(b, test, operands)
    graph = _graph(inner, [iteration, given, *states], [more, *results])
    initial = [operands[i] for i in carried]
    limit = None if count is None else count.iterations
    outputs = b.ops("Loop", limit, first, *initial, outputs=len(carried), body=graph)
    for output, x in zip(outputs, states, strict=True):
        output.type, output.shape = x.type, x.shape
    values = dict(zip(carried, outputs, strict=True))
    return [values.get(i, x) for i, x in enumerate(operands)]


def _carried(node: Any, test: Any, body: Any) -> list[int]:
    """The indices of the values of a loop that change and that something reads."""
    changes = [_source(y) is not x for x, y in zip(body.inputs, body.outputs, strict=True)]
    found = {i for i in range(len(changes)) if _is_used(node, i)}
    found |= _depends_on(test, test.outputs)
    while True:
        more = found | _depends_on(body, [body.outputs[i] for i in found if changes[i]])
        if more == found:
            return sorted(i for i in found if changes[i])
        found = more


def _is_used(node: Any, i: int) -> bool:
    """Whether anything reads a result of an op."""
    x = node.outputs[i]
    return bool(x.consumers()) or any(x is y for y in getattr(node.graph, "outputs", ()))


def _depends_on(graph: Any, tensors: Sequence[Any]) -> set[int]:
    """The indices of the inputs of a function that some of its tensors depend on."""
    ops = set(needed(graph, tensors))
    return {i for i, x in enumerate(graph.inputs) if x.op in ops}


@dataclasses.dataclass(frozen=True)
class _Count:
    """How a loop counts: the index of its counter, the step, and the number of iterations."""

    index: int
    step: int
    iterations: ir.Value


def _count(b: Builder, test: Any, body: Any, operands: Sequence[Any]) -> _Count | None:
    """How a loop counts up by a constant to a loop-invariant limit; None if it does not."""
    less = _source(test.outputs[0]).op
    if less.type != "Less" or not less.inputs[0].dtype.is_integer:
        return None
    numbers = {x.name: i for i, x in enumerate(test.inputs)}
    counter, limit = map(_source, less.inputs)
    index, of_limit = numbers.get(counter.name), numbers.get(limit.name)
    step = None if index is None else _step(body.inputs[index], body.outputs[index])
    if index is None or step is None:
        return None
    if of_limit is None:
        fixed = tf.get_static_value(limit)
        end = None if fixed is None else b.constant(fixed)
    else:
        is_fixed = _source(body.outputs[of_limit]) is body.inputs[of_limit]
        end = operands[of_limit] if is_fixed else None
    if end is None:
        return None
    first, last = array_of(operands[index]), array_of(end)
    if first is not None and last is not None:
        iterations = -(-(last.item() - first.item()) // step)
        return _Count(index, step, b.constant(np.int64(max(iterations, 0))))
    distance = b.op("Sub", b.int64(end), b.int64(operands[index]))
    if step > 1:
        rounded = b.op("Add", distance, b.constant(np.int64(step - 1)))
        distance = b.op("Div", rounded, b.constant(np.int64(step)))
    return _Count(index, step, distance)


def _number(b: Builder, first: ir.Value, iteration: ir.Value, step: int) -> ir.Value:
    """The counter of a loop in an iteration."""
    count = b.cast(iteration, dtype_of(first))
    if step > 1:
        count = b.op("Mul", count, b.like(first, step))
    known = array_of(first)
    return count if known is not None and not known.any() else b.op("Add", first, count)


def _step(before: Any, after: Any) -> int | None:
    """The constant that is added to a number in each iteration; None if it changes otherwise."""
    step, x = 0, _source(after)
    while x is not before:
        if x.op.type != "AddV2":
            return None
        added = tf.get_static_value(x.op.inputs[1])
        if added is None:
            return None
        step += int(added)
        x = _source(x.op.inputs[0])
    return step if step > 0 else None


def _source(x: Any) -> Any:
    """A tensor without the identities that it went through."""
    while x.op.type == "Identity":
        x = x.op.inputs[0]
    return x


def _parameter(b: Builder, name: str, dtype: ir.DataType, sizes: Any) -> ir.Value:
    """An input of a subgraph."""
    return ir.Value(
        name=b.names.unique(f"{b.name}/{name}"),
        shape=None if sizes is None else ir.Shape(sizes),
        type=ir.TensorType(dtype),
    )


def _check(b: Builder, results: Sequence[Any]) -> None:
    """Raises an UnsupportedError for what a loop or branch cannot return."""
    for x in results:
        if not isinstance(x, ir.Value):
            raise UnsupportedError(
                f"{b.name!r} returns {kind_of(x)}, which lowering does not write to ONNX"
            )


def _graph(b: Builder, inputs: Sequence[ir.Value], results: Sequence[ir.Value]) -> ir.Graph:
    """A subgraph, in which a separate node makes each result."""
    made = {id(x) for node in b.nodes for x in node.outputs}
    _check(b, results)
    outputs = []
    for x in results:
        if id(x) not in made:
            x = b.copy(x)
        made.discard(id(x))
        outputs.append(x)
    return ir.Graph(inputs, outputs, nodes=b.nodes, name=b.names.unique(f"{b.name}/graph"))
