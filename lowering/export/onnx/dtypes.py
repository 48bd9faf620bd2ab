"""Dtypes of ONNX, and which of them onnxruntime's CPU computes ops with.

The standard has more: where a kernel is missing, the op is computed in a wider dtype. The kernels
are those that `get_all_opkernel_def()` of `onnxruntime.capi.onnxruntime_pybind11_state` lists for
onnxruntime 1.32.
"""

from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from lowering.errors import UnsupportedError

BOOL, INT8, UINT8 = ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8
INT16, UINT16 = ir.DataType.INT16, ir.DataType.UINT16
INT32, UINT32 = ir.DataType.INT32, ir.DataType.UINT32
INT64, UINT64 = ir.DataType.INT64, ir.DataType.UINT64
FLOAT16, BFLOAT16 = ir.DataType.FLOAT16, ir.DataType.BFLOAT16
FLOAT, DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE

UNSIGNED = {INT8: UINT8, INT16: UINT16, INT32: UINT32, INT64: UINT64}
BITS = {INT8: 8, INT16: 16, INT32: 32, INT64: 64, UINT8: 8, UINT16: 16, UINT32: 32, UINT64: 64}

# A dtype that holds all numbers of another, and has more kernels. For uint64 there is none; that
# wraps to int64 and back.
_WIDER = {
    **dict.fromkeys((BOOL, INT8, UINT8, INT16, UINT16), INT32),
    UINT32: INT64,
    UINT64: INT64,
    FLOAT16: FLOAT,
    BFLOAT16: FLOAT,
}

_SINGLE = frozenset({FLOAT})
_FLOATS = frozenset({FLOAT, DOUBLE})
_SUMS = _FLOATS | {INT32, INT64}
_ALL = frozenset({BOOL, *BITS, FLOAT16, BFLOAT16, FLOAT, DOUBLE})
_ARITHMETIC = _FLOATS | BITS.keys()

# The dtypes of the operands of ops; ops that are not here have kernels for all of them.
_KERNELS = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Abs"), _ARITHMETIC),
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), _ARITHMETIC),
    "Equal": _ARITHMETIC | {BOOL},
    "Neg": _FLOATS | {INT8, INT16, INT32, INT64},
    **dict.fromkeys(("Max", "Min", "Clip"), _SUMS | {INT8, UINT8, UINT32, UINT64}),
    **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMean"), _SUMS),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ArgMax", "ArgMin"), _SUMS | {INT8, UINT8}),
    **dict.fromkeys(("Pow", "CumSum"), _SUMS),
    "CumProd": _SUMS | {UINT32, UINT64},
    "MatMul": _SUMS | {UINT32, UINT64},
    "Where": _SUMS | {INT8, UINT8, UINT32},
    "TopK": _SUMS | {INT8, INT16, UINT8},
    "Tile": _ALL - {FLOAT16, BFLOAT16},
    "Pad": _SUMS | {INT8, UINT8, UINT32, UINT64},
    "Expand": _ALL - {BFLOAT16},
    "Relu": _FLOATS | {INT8, INT32},
    "Range": _SUMS | {INT16},
    "Trilu": _SUMS | {BOOL},
    **dict.fromkeys(("Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tanh"), _FLOATS),
    **dict.fromkeys(("Ceil", "Floor", "Sigmoid", "Softmax", "LogSoftmax"), _FLOATS),
    "Round": _FLOATS | {FLOAT16},
    "IsNaN": _FLOATS | {FLOAT16, BFLOAT16},
    "IsInf": _FLOATS,
    "MaxPool": _FLOATS | {INT8, UINT8},
    **dict.fromkeys(("Conv", "ConvTranspose", "AveragePool", "Erf", "Softplus", "Gelu"), _SINGLE),
}

# Ops whose results are the same in a wider dtype, whatever their operands.
_OF_ORDER = {"MaxPool"}


def of(dtype: Any) -> ir.DataType:
    """The dtype of ONNX for one of TensorFlow or NumPy; an UnsupportedError if there is none."""
    numpy_dtype = dtype.as_numpy_dtype if isinstance(dtype, tf.DType) else dtype
    try:
        return ir.DataType.from_numpy(np.dtype(numpy_dtype))
    except TypeError as error:
        raise UnsupportedError(f"ONNX has no {getattr(dtype, 'name', dtype)}") from error


def computed_in(kind: str, dtype: ir.DataType) -> ir.DataType:
    """The dtype in which an op of ONNX is computed for operands of a dtype.

    Args:
      kind: the op.
      dtype: the dtype of the operands.
    """
    kernels = _KERNELS.get(kind)
    if kernels is None or dtype in kernels:
        return dtype
    if kind in _OF_ORDER and dtype not in (FLOAT16, BFLOAT16):
        return DOUBLE
    wider = _WIDER.get(dtype, dtype)
    return wider if wider in kernels else dtype
