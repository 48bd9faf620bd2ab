"""Random numbers, other ones in each run."""

from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import op

# From this version on, onnxruntime's CPU has no kernel for RandomUniformLike.
_WITHOUT_KERNEL = 22

# The random bits of a number: as many as the significand of float32 has.
_BITS = 24


@op("RandomUniform")
def random_uniform(b: Builder, node: Any, sizes: ir.Value) -> ir.Value:
    """Random numbers in [0, 1), whose bits are the mask of a Dropout.

    In older opsets they are the result of one op, see `onnx.quirks.random_numbers_of_new_opsets`.
    """
    dtype, sizes = dtypes.of(node.outputs[0].dtype), b.int64(sizes)
    if b.opset < _WITHOUT_KERNEL:
        return b.op("RandomUniformLike", _filled(b, 0, sizes, dtype))
    ones = _filled(b, 1, b.concat([sizes, b.ints(_BITS)]), dtypes.FLOAT)
    half, is_training = b.constant(np.float32(0.5)), b.constant(np.bool_(True))
    _, bits = b.ops("Dropout", ones, half, is_training, outputs=2)
    bits.type = ir.TensorType(dtypes.BOOL)
    values = 0.5 ** np.arange(1, _BITS + 1)
    summands = b.op("Mul", b.cast(bits, dtype), b.constant(values, dtype))
    return b.op("ReduceSum", summands, b.ints(-1), keepdims=0)


def _filled(b: Builder, number: int, sizes: ir.Value, dtype: ir.DataType) -> ir.Value:
    value = ir.Tensor(np.full(1, number, dtype.numpy()))
    return b.op("ConstantOfShape", sizes, value=value, dtype=dtype)
