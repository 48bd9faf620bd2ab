"""Looks rows of constant tables up by the TF Lite op that reads tables of 8 and 4 bits.

The kernel of `GATHER` takes quantized tables only where its results are quantized, too. That of
`EMBEDDING_LOOKUP` makes floats of the rows that it reads; it takes a vector of indices.
"""

import dataclasses
import math
from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from lowering.errors import UnsupportedError
from lowering.export.computed_constants import Computed
from lowering.export.tflite_weights import index_of_code

_OPS = schema.BuiltinOperator
_FLOAT32 = schema.TensorType.FLOAT32


@dataclasses.dataclass
class Products:
    """The products with weights in a model, by the names of their outputs.

    Attributes:
      last: products that are outputs of the model, perhaps reshaped.
      lengths: the size of the contracted dimension, of products with one matrix.
      batched: batched products, whose second operand is the weights.
      computed: products, convolutions and lookups with constants that are no weights.
    """

    last: list[str] = dataclasses.field(default_factory=list)
    lengths: dict[str, int] = dataclasses.field(default_factory=dict)
    batched: list[str] = dataclasses.field(default_factory=list)
    computed: list[str] = dataclasses.field(default_factory=list)


def use_lookups(root: Any, computed: Computed) -> Products:
    """Makes a model read rows of tables by `EMBEDDING_LOOKUP`; returns its products.

    Args:
      root: the model.
      computed: its constants that are no weights.
    """
    lookup = index_of_code(root, _OPS.EMBEDDING_LOOKUP, 4)
    reshape = index_of_code(root, _OPS.RESHAPE, 1)
    products = Products()
    for graph in root.subgraphs:
        for op in list(graph.operators):
            if _reads_rows(root, graph, op) and not _is_computed(
                root, graph.tensors[op.inputs[0]], computed
            ):
                _check_finite(root, graph.tensors[op.inputs[0]])
                _replace(root, graph, op, lookup, reshape)
        _empty_unused(graph)
        products.last += _last(root, graph)
        _note(root, graph, products, computed)
    return products


def _note(root: Any, graph: Any, products: Products, computed: Computed) -> None:
    """Adds the products of a graph whose second operand is a constant."""
    for op in graph.operators:
        kind = _code(root, op)
        if kind not in (_OPS.FULLY_CONNECTED, _OPS.BATCH_MATMUL, _OPS.CONV_2D):
            continue
        weights = graph.tensors[op.inputs[1]]
        if root.buffers[weights.buffer].data is None:
            continue
        if _is_computed(root, weights, computed):
            products.computed.append(_name_of_output(graph, op))
            continue
        if kind == _OPS.CONV_2D:
            continue
        _check_finite(root, weights)
        if kind == _OPS.BATCH_MATMUL:
            products.batched.append(_name_of_output(graph, op))
        else:
            products.lengths[_name_of_output(graph, op)] = int(weights.shape[-1])


def _is_computed(root: Any, x: Any, computed: Computed) -> bool:
    """Whether a constant of a model is no weight."""
    return x.type == _FLOAT32 and computed.has(_numbers(root, x))


def _numbers(root: Any, x: Any) -> np.ndarray:
    """The numbers of a constant of floats."""
    return np.frombuffer(root.buffers[x.buffer].data, np.float32).reshape(x.shape)


def _check_finite(root: Any, weights: Any) -> None:
    """Raises an UnsupportedError for weights that have no scale."""
    if weights.type != _FLOAT32:
        return
    numbers = _numbers(root, weights)
    if not (is_finite := np.isfinite(numbers)).all():
        at = np.unravel_index(int(is_finite.argmin()), numbers.shape)
        raise UnsupportedError(
            "weights with NaN or infinities cannot be quantized: a matrix of the shape "
            f"{list(map(int, weights.shape))} in the model has {numbers[at]} at "
            f"{list(map(int, at))}"
        )


def _empty_unused(graph: Any) -> None:
    """Gives constants that no op reads an empty buffer.

    The body of a loop has its own constants, which share buffers with those outside of it. AI Edge
    Quantizer quantizes a buffer, but does not change the type of constants that no op reads.
    """
    used = {i for op in graph.operators for i in (*op.inputs, *op.outputs)}
    used.update((*graph.inputs, *graph.outputs))
    for i, tensor in enumerate(graph.tensors):
        if i not in used:
            tensor.buffer = 0


def _code(root: Any, op: Any) -> int:
    return root.operatorCodes[op.opcodeIndex].builtinCode


def _reads_rows(root: Any, graph: Any, op: Any) -> bool:
    """Whether an op reads rows of a constant matrix."""
    if _code(root, op) != _OPS.GATHER or op.builtinOptions.axis or op.builtinOptions.batchDims:
        return False
    table, indices = (graph.tensors[i] for i in op.inputs)
    is_constant = root.buffers[table.buffer].data is not None
    is_static = indices.shape is not None and all(size >= 0 for size in indices.shape)
    return (
        is_constant
        and is_static
        and table.type == _FLOAT32
        and len(table.shape) == 2
        and indices.type == schema.TensorType.INT32
    )


def _replace(root: Any, graph: Any, op: Any, lookup: int, reshape: int) -> None:
    """Replaces a `GATHER` by a lookup between two reshapes."""
    table, indices = op.inputs
    result = op.outputs[0]
    rows, features = math.prod(graph.tensors[indices].shape), graph.tensors[table].shape[1]
    name = graph.tensors[result].name
    flat = _tensor(graph, name + b"/indices", [rows], schema.TensorType.INT32)
    found = _tensor(graph, name + b"/rows", [rows, features], _FLOAT32)
    place = graph.operators.index(op)
    graph.operators[place : place + 1] = [
        _reshape(root, graph, reshape, indices, flat),
        _op(lookup, [flat, table], [found]),
        _reshape(root, graph, reshape, found, result),
    ]


def _tensor(graph: Any, name: bytes, shape: list[int], kind: int, buffer: int = 0) -> int:
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type, tensor.buffer = name, shape, kind, buffer
    tensor.hasRank = True
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _op(code: int, inputs: list[int], outputs: list[int]) -> Any:
    op = schema.OperatorT()
    op.opcodeIndex, op.inputs, op.outputs = code, inputs, outputs
    return op


def _reshape(root: Any, graph: Any, code: int, operand: int, result: int) -> Any:
    shape = np.asarray(graph.tensors[result].shape, np.int32)
    buffer = schema.BufferT()
    buffer.data = shape.view(np.uint8)
    root.buffers.append(buffer)
    name = graph.tensors[result].name + b"/shape"
    sizes = _tensor(graph, name, [len(shape)], schema.TensorType.INT32, len(root.buffers) - 1)
    op = _op(code, [operand, sizes], [result])
    op.builtinOptionsType = schema.BuiltinOptions.ReshapeOptions
    op.builtinOptions = schema.ReshapeOptionsT()
    op.builtinOptions.newShape = shape
    return op


def _last(root: Any, graph: Any) -> list[str]:
    """The names of outputs of products that are outputs of a graph, perhaps reshaped."""
    makers = {output: op for op in graph.operators for output in op.outputs}
    found = []
    for output in graph.outputs:
        op = makers.get(output)
        while op is not None and _code(root, op) == _OPS.RESHAPE:
            op = makers.get(op.inputs[0])
        if op is not None and _code(root, op) == _OPS.FULLY_CONNECTED:
            found.append(_name_of_output(graph, op))
    return found


def _name_of_output(graph: Any, op: Any) -> str:
    return graph.tensors[op.outputs[0]].name.decode()
