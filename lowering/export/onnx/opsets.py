"""The versions of ONNX's set of operators."""

import functools

import numpy as np
import onnx_ir as ir
from onnx import defs, helper

from lowering.export.onnx import dtypes
from lowering.export.packages import import_package

# The versions that models may have.
OPSETS = range(17, defs.onnx_opset_version() + 1)


@functools.cache
def newest(kind: str = "Identity") -> int:
    """The newest version that the installed onnxruntime runs; without one, that onnx knows.

    Args:
      kind: an op that it has to run, of one operand; or "DequantizeLinear", for quantized models.
    """
    try:
        runtime = import_package("onnxruntime", "onnx")
    except ImportError:
        return OPSETS[-1]
    for opset in reversed(OPSETS):
        try:
            model = ir.to_proto(_smallest(opset, kind)).SerializeToString()
            runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
        except Exception:  # Its errors have no class of their own.
            continue
        return opset
    return OPSETS[0]


def ir_version(opset: int) -> int:
    """The version of the format of files that came with a set of operators."""
    return helper.OP_SET_ID_VERSION_MAP["ai.onnx", opset]


def _smallest(opset: int, kind: str) -> ir.Model:
    """A model of one node."""
    is_integer = kind == "DequantizeLinear"
    given = ir.TensorType(dtypes.INT8 if is_integer else dtypes.FLOAT)
    x = ir.Value(name="x", shape=ir.Shape([1]), type=given)
    scale = ir.Value(name="scale", const_value=ir.Tensor(np.float32(1), name="scale"))
    node = ir.Node("", kind, [x, scale] if is_integer else [x], name=kind)
    (y,) = node.outputs
    y.name, y.type, y.shape = "y", ir.TensorType(dtypes.FLOAT), x.shape
    initializers = [scale] if is_integer else []
    graph = ir.Graph(
        [x],
        [y],
        nodes=[node],
        initializers=initializers,
        name="graph",
        opset_imports={"": opset},
    )
    return ir.Model(graph, ir_version=ir_version(opset))
