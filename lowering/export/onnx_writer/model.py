"""Models of ONNX: a graph with its inputs, outputs and initializers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf
from onnx import defs, helper
from onnx_ir.passes import common

from lowering.export import signatures
from lowering.export.onnx_writer import (
    contraction,
    control_flow,
    dtypes,
    elementwise,
    graph,
    indexing,
    integers,
    parts,
    reduction,
    structure,
    windows,
)
from lowering.export.onnx_writer.builder import Builder
from lowering.export.onnx_writer.values import dtype_of, is_known
from lowering.export.weights import in_fewer_bits

# The versions of the set of operators that models may have.
OPSETS = range(17, defs.onnx_opset_version() + 1)

# The modules whose rules the table has.
RULES = (
    contraction,
    control_flow,
    elementwise,
    indexing,
    integers,
    parts,
    reduction,
    structure,
    windows,
)


def model(
    concrete: Any,
    opset: int,
    dims: Mapping[str, Sequence[int | str | None]] | None = None,
    of_program: Iterable[np.dtype] = (),
) -> ir.Model:
    """The model of a concrete function of TensorFlow.

    Args:
      concrete: the function.
      opset: the version of ONNX's set of operators.
      dims: the shapes of inputs and outputs, by name, with names for symbolic sizes; by default the
        sizes that TensorFlow knows.
      of_program: dtypes of 8 and 16 bits in which weights are stored if these hold them.

    Raises:
      UnsupportedError: for an op that ONNX lacks.
    """
    dims = dims or {}
    tensors = signatures.inputs(concrete)
    outputs = signatures.named(concrete, concrete.outputs)
    b = Builder(opset)
    inputs = [_input(b, x, dims) for x in tensors]
    for name in outputs:
        b.names.unique(name)
    captured = [_captured(x, concrete) for x in concrete.captured_inputs]
    found = graph.call(b, concrete.graph, [*inputs, *captured])
    results = signatures.named(concrete, found)
    named = _named(b, results, inputs)
    for name, x in zip(results, named, strict=True):
        if name in dims:
            x.shape = ir.Shape(dims[name])
    made = ir.Model(
        ir.Graph(
            inputs,
            named,
            nodes=b.nodes,
            name=concrete.name.decode() if isinstance(concrete.name, bytes) else concrete.name,
            opset_imports={"": opset},
        ),
        ir_version=helper.OP_SET_ID_VERSION_MAP["ai.onnx", opset],
        producer_name="lowering",
    )
    common.RemoveUnusedNodesPass()(made)
    _add_initializers(made.graph, of_program)
    return made


def serialized(made: ir.Model) -> bytes:
    """A model as bytes."""
    return ir.to_proto(made).SerializeToString()


def _input(b: Builder, x: tf.Tensor, dims: Mapping[str, Any]) -> ir.Value:
    """The input for a placeholder."""
    name = b.names.unique(x.op.name)
    shape = dims.get(name, x.shape.as_list() if x.shape.rank is not None else None)
    return ir.Value(
        name=name,
        shape=None if shape is None else ir.Shape(shape),
        type=ir.TensorType(dtypes.of(x.dtype)),
    )


def _captured(tensor: tf.Tensor, concrete: Any) -> Any:
    """What stands for a tensor that a function captures: its variable, or the tensor's value."""
    if tensor.dtype == tf.resource:
        return next(v for v in concrete.graph.variables if v.handle is tensor)
    return ir.Value(
        name=tensor.name,
        const_value=ir.Tensor(np.asarray(tensor)),
        type=ir.TensorType(dtypes.of(tensor.dtype)),
    )


def _named(
    b: Builder, results: Mapping[str, ir.Value], inputs: Sequence[ir.Value]
) -> list[ir.Value]:
    """Outputs of a graph, which are values of their own."""
    taken = set(map(id, inputs))
    found = []
    for name, x in results.items():
        if id(x) in taken or is_known(x):
            x = b.copy(x)
        x.name = name
        taken.add(id(x))
        found.append(x)
    return found


def _add_initializers(main: ir.Graph, of_program: Iterable[np.dtype]) -> None:
    """Enters the constants that nodes read, in graphs within it, too, into a graph."""
    used: dict[str, ir.Value] = {}
    for node in ir.traversal.RecursiveGraphIterator(main):
        for x in node.inputs:
            if x is not None and is_known(x) and x.producer() is None:
                used[str(x.name)] = x
    for name, x in used.items():
        main.initializers[name] = x
    if not of_program:
        return
    for name, x in used.items():
        assert x.const_value is not None
        stored = in_fewer_bits(x.const_value.numpy(), of_program, has_bfloat16=True)
        if stored is not None:
            _widen(main, name, x, stored)


def _widen(main: ir.Graph, name: str, x: ir.Value, stored: np.ndarray) -> None:
    """Puts an array of fewer bits, and the op that widens it, in the place of an initializer."""
    dtype = dtypes.of(stored.dtype)
    narrow = ir.Value(
        name=f"{name}__stored",
        shape=x.shape,
        type=ir.TensorType(dtype),
        const_value=ir.Tensor(stored),
    )
    attributes = ir.convenience.convert_attributes({"to": int(dtype_of(x))})
    node = ir.Node("", "Cast", [narrow], attributes, name=f"{name}__widened")
    (wide,) = node.outputs
    wide.type, wide.shape = x.type, x.shape
    ir.convenience.replace_all_uses_with(x, wide)
    del main.initializers[name]
    wide.name = name
    main.initializers[f"{name}__stored"] = narrow
    main.insert_before(main[0], node)
