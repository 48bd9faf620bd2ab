"""Models of ONNX: a graph with its inputs, outputs and initializers."""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf
from onnx_ir.passes import common

from lowering.export import signatures
from lowering.export.onnx import (
    contraction,
    control_flow,
    dtypes,
    elementwise,
    fusing,
    graph,
    indexing,
    initializers,
    integers,
    opsets,
    parts,
    randomness,
    reduction,
    structure,
    windows,
)
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import is_known

# How many bytes of weights a model may have in one message of protobuf, which ends at 2 GB.
LARGEST = 2_000_000_000

# The modules whose rules the table has.
RULES = (
    contraction,
    control_flow,
    elementwise,
    indexing,
    integers,
    parts,
    randomness,
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
    captured = [_captured(b, x, concrete) for x in concrete.captured_inputs]
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
        ir_version=opsets.ir_version(opset),
        producer_name="lowering",
    )
    fusing.fuse(b, made.graph)
    common.RemoveUnusedNodesPass()(made)
    initializers.add(made.graph, of_program)
    return made


def serialized(made: ir.Model) -> bytes:
    """A model as bytes.

    Raises:
      ValueError: if that is more than protobuf has in one message; `save` writes such models.
    """
    if _bytes_of_weights(made) > LARGEST:
        raise ValueError(f"a model of more than {LARGEST} bytes has to be saved in several files")
    return ir.to_proto(made).SerializeToString()


def save(made: ir.Model, path: pathlib.Path, external_data: bool = False) -> None:
    """Writes a model, one weight after the other.

    Args:
      made: the model.
      path: the file.
      external_data: whether weights are written to a file beside it, with ".data" behind its name;
        where they are too large for one file they are.
    """
    is_external = external_data or _bytes_of_weights(made) > LARGEST
    ir.save(made, path, external_data=f"{path.name}.data" if is_external else None)


def _bytes_of_weights(made: ir.Model) -> int:
    """The size of all weights."""
    values = [x.const_value for x in made.graph.initializers.values()]
    return sum(tensor.nbytes for tensor in values if tensor is not None)


def _input(b: Builder, x: tf.Tensor, dims: Mapping[str, Any]) -> ir.Value:
    """The input for a placeholder."""
    name = b.names.unique(x.op.name)
    shape = dims.get(name, x.shape.as_list() if x.shape.rank is not None else None)
    return ir.Value(
        name=name,
        shape=None if shape is None else ir.Shape(shape),
        type=ir.TensorType(dtypes.of(x.dtype)),
    )


def _captured(b: Builder, tensor: tf.Tensor, concrete: Any) -> Any:
    """What stands for a tensor that a function captures: its variable, or the tensor's value."""
    if tensor.dtype == tf.resource:
        return next(v for v in concrete.graph.variables if v.handle is tensor)
    return b.constants.value(np.asarray(tensor), "captured")


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
