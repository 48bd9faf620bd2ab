"""The versions of ONNX's set of operators."""

import functools

import onnx_ir as ir
from onnx import defs, helper

from lowering.export.onnx import dtypes
from lowering.export.packages import import_package

# The versions that models may have.
OPSETS = range(17, defs.onnx_opset_version() + 1)


@functools.cache
def newest() -> int:
    """The newest version that the installed onnxruntime runs; without one, that onnx knows."""
    try:
        runtime = import_package("onnxruntime", "onnx")
    except ImportError:
        return OPSETS[-1]
    for opset in reversed(OPSETS):
        try:
            model = ir.to_proto(_smallest(opset)).SerializeToString()
            runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
        except Exception:  # Its errors have no class of their own.
            continue
        return opset
    return OPSETS[0]


def ir_version(opset: int) -> int:
    """The version of the format of files that came with a set of operators."""
    return helper.OP_SET_ID_VERSION_MAP["ai.onnx", opset]


def _smallest(opset: int) -> ir.Model:
    """A model of one node."""
    x = ir.Value(name="x", shape=ir.Shape([1]), type=ir.TensorType(dtypes.FLOAT))
    node = ir.Node("", "Identity", [x], name="Identity")
    (y,) = node.outputs
    y.name, y.type, y.shape = "y", x.type, x.shape
    graph = ir.Graph([x], [y], nodes=[node], name="graph", opset_imports={"": opset})
    return ir.Model(graph, ir_version=ir_version(opset))
