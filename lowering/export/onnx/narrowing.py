"""Removes casts to float32 and back around ops, in models that compute in 16 bits.

JAX, and the rules of ops, have sums of 16-bit floats computed in float32 and rounded once. Runtimes
do the same within an op of 16 bits, so that the casts around it are not needed.
"""

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import (
    array_of,
    dtype_of,
    is_known,
    made_by,
    permutation,
    static,
)

# Ops that are sums, or have such within them.
_SUMS = frozenset(
    {
        "AveragePool",
        "Conv",
        "ConvTranspose",
        "CumSum",
        "Gelu",
        "Gemm",
        "LayerNormalization",
        "LogSoftmax",
        "MatMul",
        "RMSNormalization",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "Softmax",
    }
)

# Ops that move elements.
_MOVES = frozenset({"Expand", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


def narrowed(b: Builder, root: ir.Node) -> ir.Value | None:
    """The result of a cast to a narrow dtype: of the op before it, computed in this dtype."""
    if root.op_type != "Cast" or root.inputs[0] is None:
        return None
    dtype = dtype_of(root.outputs[0])
    if dtype not in b.kept:
        return None
    return _op_of(b, root.inputs[0], dtype, _SUMS | _MOVES)


def _op_of(b: Builder, x: ir.Value, dtype: ir.DataType, kinds: frozenset[str]) -> ir.Value | None:
    """The op that makes a float32 value, in a narrow dtype; None if its result could differ."""
    node = x.producer()
    if node is None or node.op_type not in kinds or len(node.outputs) != 1:
        return None
    if x.dtype != dtypes.FLOAT or len(x.uses()) != 1 or x.is_graph_output():
        return None
    if b.computed_in(node.op_type, dtype) != dtype:
        return None
    operands: list[ir.Value | None] = []
    for operand in node.inputs:
        is_float = operand is not None and operand.dtype == dtypes.FLOAT
        same = _exactly(b, operand, dtype) if operand is not None and is_float else operand
        if is_float and same is None:
            return None
        operands.append(same)
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    made = b.ops(node.op_type, *operands, dtype=dtype, **attributes)[0]
    made.shape = x.shape
    return made


def _exactly(b: Builder, x: ir.Value, dtype: ir.DataType) -> ir.Value | None:
    """The value of a narrow dtype that equals a float32 value exactly; None if there is none."""
    source = made_by(x, "Cast")
    if source is not None:
        return source if dtype_of(source) == dtype else None
    array = array_of(x)
    if array is None:
        return _op_of(b, x, dtype, _MOVES)
    is_exact = np.array_equal(array.astype(dtype.numpy()).astype(array.dtype), array, True)
    return b.cast(x, dtype) if is_exact else None


def before_transpose(b: Builder, root: ir.Node) -> ir.Value | None:
    """A product of a transpose and a constant matrix, computed before the transpose.

    See `onnx.quirks.products_of_transposes_in_16_bits`.
    """
    if root.op_type != "MatMul" or root.outputs[0].dtype not in b.kept:
        return None
    x, y = root.inputs
    assert x is not None and y is not None
    source, sizes = made_by(x, "Transpose"), static(y)
    if source is None or source.shape is None or sizes is None or not is_known(y):
        return None
    perm = permutation(x)
    if len(sizes) != 2 or perm[-1] != len(perm) - 1:
        return None
    product = b.op("MatMul", source, y)
    product.shape = ir.Shape([*source.shape[:-1], sizes[-1]])
    return b.transpose(product, perm)
