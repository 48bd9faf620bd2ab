"""Weights of TF Lite models in 8 and 16 bits, and the ops that widen them to 32 bits.

LiteRT runs `DEQUANTIZE` of a constant once, when the model is loaded. Tables of integers, of which
ops take some rows, stay in 8 bits there, too: the rows are cast.
"""

import collections
import copy
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from lowering import short_floats
from lowering.export.channels import Scaled, scaled
from lowering.export.weights import LARGE_BYTES, in_fewer_bits

_FLOAT32 = schema.TensorType.FLOAT32
_INT32 = schema.TensorType.INT32
_TYPES = {
    np.dtype(np.float16): schema.TensorType.FLOAT16,
    np.dtype(np.int8): schema.TensorType.INT8,
    np.dtype(np.int16): schema.TensorType.INT16,
    np.dtype(np.uint8): schema.TensorType.UINT8,
}
# By an op whose second operand are the weights of a layer: the axis of features in these.
_LAYERS = {
    schema.BuiltinOperator.CONV_2D: 0,
    schema.BuiltinOperator.DEPTHWISE_CONV_2D: 3,
    schema.BuiltinOperator.FULLY_CONNECTED: 0,
    schema.BuiltinOperator.TRANSPOSE_CONV: 0,
}
# Ops that take a part of their first operand.
_TAKING_A_PART = frozenset(
    getattr(schema.BuiltinOperator, name)
    for name in ("GATHER", "GATHER_ND", "SLICE", "STRIDED_SLICE")
)


def store_weights(root: Any, of_program: Iterable[np.dtype], sizes: Collection[int]) -> None:
    """Stores the weights of a model in the dtypes of the program, where these hold them.

    The converter multiplies weights by factors, such as those of batch norms. If the weights were
    of 16 bits, the products are rounded to float16.

    Args:
      root: a model that computes in float32, as an object.
      of_program: the dtypes, as `weights.dtypes_of` finds them.
      sizes: those of its weights in 16 bits, as `weights.sizes_in_16_bits` finds them.
    """
    # There is no op that widens these.
    of_program = [dtype for dtype in of_program if dtype != np.uint16]
    if not of_program:
        return
    tensors = collections.defaultdict(list)
    for graph in root.subgraphs:
        made = {i for op in graph.operators for i in op.outputs}
        for i, tensor in enumerate(graph.tensors):
            if i not in made and root.buffers[tensor.buffer].data is not None:
                # XNNPACK returns no result of the op.
                is_result = i in graph.outputs
                tensors[tensor.buffer].append((graph, tensor, is_result))
    for buffer, of_buffer in tensors.items():
        if any(is_result for _, _, is_result in of_buffer):
            continue
        types = {tensor.type for _, tensor, _ in of_buffer}
        if types == {_INT32}:
            places = [(graph, tensor) for graph, tensor, _ in of_buffer]
            _store_table(root, root.buffers[buffer], places, of_program)
        if types != {_FLOAT32}:
            continue
        numbers = np.asarray(root.buffers[buffer].data, np.uint8).view(np.float32)
        stored, scales = in_fewer_bits(numbers, of_program), None
        if stored is None and _may_be_scaled(numbers, of_program):
            shapes = {tuple(tensor.shape) for _, tensor, _ in of_buffer}
            scales = scaled(numbers.reshape(shapes.pop())) if len(shapes) == 1 else None
            stored = None if scales is None else scales.integers.reshape(-1)
        if stored is None and numbers.size in sizes:
            stored = _rounded(root, numbers, [(graph, tensor) for graph, tensor, _ in of_buffer])
        if stored is None:
            continue
        root.buffers[buffer].data = stored.view(np.uint8)
        for graph, tensor, _ in of_buffer:
            _widen(root, graph, tensor, _TYPES[stored.dtype], scales)


def _store_table(
    root: Any,
    buffer: Any,
    places: Sequence[tuple[Any, Any]],
    of_program: Iterable[np.dtype],
) -> None:
    """Stores integers of 32 bits in a narrower dtype of the program, if all ops select elements.

    Args:
      root: the model.
      buffer: the integers in 32 bits.
      places: the tensors that have this buffer, with their graphs.
      of_program: dtypes of the program.
    """
    numbers = np.asarray(buffer.data, np.uint8).view(np.int32)
    integers = [dtype for dtype in of_program if dtype.kind in "iu"]
    stored = in_fewer_bits(numbers, integers)
    uses = [
        (graph, tensor, op, place)
        for graph, tensor in places
        for op in graph.operators
        for place, i in enumerate(op.inputs)
        if i >= 0 and graph.tensors[i] is tensor
    ]
    codes = [root.operatorCodes[op.opcodeIndex].builtinCode for _, _, op, _ in uses]
    is_taken = all(place == 0 for *_, place in uses) and _TAKING_A_PART.issuperset(codes)
    if stored is None or not uses or not is_taken:
        return
    buffer.data = stored.view(np.uint8)
    for _, tensor in places:
        tensor.type = _TYPES[stored.dtype]
    for graph, tensor, op, _ in uses:
        _take_part(root, graph, op, tensor.type)


def _take_part(root: Any, graph: Any, op: Any, kind: int) -> None:
    """Changes the type of the result of an op, and casts the result to its former type."""
    (result,) = op.outputs
    users = [other for other in graph.operators if result in other.inputs]
    codes = {root.operatorCodes[other.opcodeIndex].builtinCode for other in users}
    if codes == {schema.BuiltinOperator.CAST} and result not in graph.outputs:
        graph.tensors[result].type = kind
        for cast in users:
            if cast.builtinOptions is not None:
                cast.builtinOptions.inDataType = kind
        return
    part = copy.copy(graph.tensors[result])
    part.name, part.type = part.name + b"/stored", kind
    op.outputs = [len(graph.tensors)]
    graph.tensors.append(part)
    cast = schema.OperatorT()
    cast.opcodeIndex = index_of_code(root, schema.BuiltinOperator.CAST, 1)
    cast.inputs, cast.outputs = list(op.outputs), [result]
    cast.builtinOptionsType = schema.BuiltinOptions.CastOptions
    cast.builtinOptions = schema.CastOptionsT()
    cast.builtinOptions.inDataType, cast.builtinOptions.outDataType = kind, _INT32
    graph.operators.insert(graph.operators.index(op) + 1, cast)


def _rounded(
    root: Any, numbers: np.ndarray, places: Sequence[tuple[Any, Any]]
) -> np.ndarray | None:
    """The weights of a layer as float16; None if they are no such, or lose too much."""
    (graph, tensor), *others = places
    index = graph.tensors.index(tensor)
    users = [op for op in graph.operators if index in op.inputs]
    if others or len(users) != 1 or list(users[0].inputs).index(index) != 1:
        return None
    axis = _LAYERS.get(root.operatorCodes[users[0].opcodeIndex].builtinCode)
    if axis is None:
        return None
    weights = numbers.reshape(tensor.shape)
    rounded = short_floats.rounded(weights, np.dtype(np.float16), axis)
    return None if rounded is None else rounded.reshape(-1)


def _may_be_scaled(numbers: np.ndarray, of_program: Iterable[np.dtype]) -> bool:
    """Whether it is worth looking for int8 integers times factors in a weight."""
    return numbers.nbytes >= LARGE_BYTES and np.dtype(np.int8) in of_program


def _widen(root: Any, graph: Any, tensor: Any, kind: int, scales: Scaled | None) -> None:
    """Makes a constant the result of an op that widens a new constant, which gets its buffer."""
    stored = schema.TensorT()
    stored.name = tensor.name + b"/stored"
    stored.shape, stored.type, stored.buffer = tensor.shape, kind, tensor.buffer
    stored.hasRank = True
    if kind != schema.TensorType.FLOAT16:
        factors = [1.0] if scales is None else scales.scales.tolist()
        stored.quantization = schema.QuantizationParametersT()
        stored.quantization.scale, stored.quantization.zeroPoint = factors, [0] * len(factors)
        stored.quantization.quantizedDimension = 0 if scales is None else scales.axis
    tensor.buffer = 0
    graph.tensors.append(stored)
    op = schema.OperatorT()
    # The first version of the op that takes float16, and a factor for each channel.
    version = 3 if scales is None else 5
    op.opcodeIndex = index_of_code(root, schema.BuiltinOperator.DEQUANTIZE, version)
    op.inputs, op.outputs = [len(graph.tensors) - 1], [graph.tensors.index(tensor)]
    graph.operators.insert(0, op)


def index_of_code(root: Any, code: int, version: int) -> int:
    """The index of the operator code of an op in a version or a later one; the model gets one if
    it has none."""
    for i, of_op in enumerate(root.operatorCodes):
        if of_op.builtinCode == code and of_op.version >= version:
            return i
    of_op = schema.OperatorCodeT()
    of_op.builtinCode = code
    of_op.deprecatedBuiltinCode = min(code, 127)  # It had eight bits once.
    of_op.version = version
    root.operatorCodes.append(of_op)
    return len(root.operatorCodes) - 1
