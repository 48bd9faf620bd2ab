"""Models of ONNX: a graph with its inputs, outputs and initializers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf
from onnx_ir.passes import common

from lowering import versions
from lowering.errors import UnsupportedError
from lowering.export import signatures
from lowering.export.onnx import (
    contraction,
    control_flow,
    dtypes,
    elementwise,
    fourier,
    fusing,
    graph,
    indexing,
    initializers,
    integers,
    opsets,
    parts,
    randomness,
    reduction,
    slices,
    structure,
    windows,
)
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import is_known, kind_of

# The modules whose rules the table has.
RULES = (
    contraction,
    control_flow,
    elementwise,
    fourier,
    indexing,
    integers,
    parts,
    randomness,
    reduction,
    slices,
    structure,
    windows,
)

_NO_RANK = "has an unknown number of axes, which inputs and outputs of ONNX cannot have"


def model(
    concrete: Any,
    opset: int,
    dims: Mapping[str, Sequence[int | str | None]] | None = None,
    of_program: Iterable[np.dtype] = (),
    name: str = "program",
    kept: Iterable[np.dtype] = (),
) -> ir.Model:
    """The model of a concrete function of TensorFlow.

    Args:
      concrete: the function.
      opset: the version of ONNX's set of operators.
      dims: the shapes of inputs and outputs, by name, with names for symbolic sizes; by default the
        sizes that TensorFlow knows.
      of_program: dtypes of 8 and 16 bits in which weights are stored if these hold them.
      name: the name of its graph.
      kept: dtypes in which ops are computed whether or not onnxruntime's CPU has kernels.

    Raises:
      UnsupportedError: for an op that is not written to ONNX, or inputs or outputs that are complex
        or of an unknown number of axes.
    """
    dims = dims or {}
    tensors = signatures.inputs(concrete)
    outputs = signatures.named(concrete, concrete.outputs)
    b = Builder(opset, kept=[dtypes.of(dtype) for dtype in kept], stored=frozenset(of_program))
    inputs = [_input(b, x, dims) for x in tensors]
    for output in outputs:
        b.names.unique(output)
    captured = [_captured(b, x, concrete) for x in concrete.captured_inputs]
    found = graph.call(b, concrete.graph, [*inputs, *captured])
    results = signatures.named(concrete, found)
    named = _named(b, results, inputs)
    for output, x in zip(results, named, strict=True):
        if output in dims:
            x.shape = ir.Shape(dims[output])
        elif x.shape is None:
            raise UnsupportedError(f"the output {output!r} {_NO_RANK}")
    made = ir.Model(
        ir.Graph(
            inputs,
            named,
            nodes=b.nodes,
            name=name,
            opset_imports={"": opset},
        ),
        ir_version=opsets.ir_version(opset),
        producer_name="lowering",
        producer_version=versions.VERSION,
    )
    fusing.fuse(b, made.graph)
    reduction.move_axes_to_attributes(made.graph, opset)
    common.RemoveUnusedNodesPass()(made)
    initializers.add(made.graph, b.stored, dtypes.of_weights(opset))
    return made


def _input(b: Builder, x: tf.Tensor, dims: Mapping[str, Any]) -> ir.Value:
    """The input for a placeholder."""
    name = b.names.unique(x.op.name)
    try:
        dtype = dtypes.of(x.dtype)
    except UnsupportedError as error:
        raise UnsupportedError(f"the input {name!r}: {error}") from error
    if name not in dims and x.shape.rank is None:
        raise UnsupportedError(f"the input {name!r} {_NO_RANK}")
    shape = dims[name] if name in dims else x.shape.as_list()
    return ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(dtype))


def _captured(b: Builder, tensor: tf.Tensor, concrete: Any) -> Any:
    """The value of a tensor that a function captures: its variable, or the tensor's value.

    The handles of tables and the like stand for themselves; no op that takes one is written.
    """
    if tensor.dtype in (tf.resource, tf.variant):
        found = (v for v in concrete.graph.variables if v.handle is tensor)
        return next(found, tensor)
    return graph.known(b, np.asarray(tensor), "captured")


def _named(
    b: Builder, results: Mapping[str, ir.Value], inputs: Sequence[ir.Value]
) -> list[ir.Value]:
    """Outputs of a graph, which are values of their own."""
    taken = set(map(id, inputs))
    found = []
    for name, x in results.items():
        if not isinstance(x, ir.Value):
            raise UnsupportedError(
                f"the output {name!r} is {kind_of(x)}, which lowering does not write to ONNX"
            )
        if id(x) in taken or is_known(x):
            x = b.copy(x)
        x.name = name
        taken.add(id(x))
        found.append(x)
    return found
