"""Dtypes of ONNX, and which of them onnxruntime's CPU computes ops with.

The standard has more: where a kernel is missing, the op is computed in a wider dtype. The kernels
stand in a table of the target, which `tools.probe_consumers` asks onnxruntime for.
"""

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import tensorflow as tf
from onnx import defs

from lowering.errors import UnsupportedError
from lowering.targets import ONNX

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

# Dtypes that weights may have, beside float16 and integers of 8 bits or more. Nothing but a cast
# reads them, which any onnxruntime has that runs this version of the operators: integers of 4 bits
# came with version 21, but those that run nothing newer than 22 do not cast them.
_OF_WEIGHTS: Mapping[Any, int] = {
    ml_dtypes.bfloat16: 17,
    ml_dtypes.float8_e4m3fn: 19,
    ml_dtypes.float8_e4m3fnuz: 19,
    ml_dtypes.float8_e5m2: 19,
    ml_dtypes.float8_e5m2fnuz: 19,
    ml_dtypes.int4: 23,
    ml_dtypes.uint4: 23,
    ml_dtypes.int2: 25,
    ml_dtypes.uint2: 25,
}

# Ops whose results are the same in a wider dtype, whatever their operands.
_OF_ORDER = {"DepthToSpace", "MaxPool", "SpaceToDepth"}

# Ops whose result has another dtype than their first operand.
RESULTS = {
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"), BOOL),
    **dict.fromkeys(("IsNaN", "IsInf"), BOOL),
    **dict.fromkeys(("Shape", "ArgMax", "ArgMin"), INT64),
}

# Ops whose operands have one dtype, which a kernel may lack, and how many operands that are; the
# others are counts, axes and the like.
OF_ONE_DTYPE = {
    **dict.fromkeys(("Pad", "TopK", "Tile", "Expand", "CumSum", "CumProd", "Trilu"), 1),
    **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin"), 1),
}


def of(dtype: Any) -> ir.DataType:
    """The dtype of ONNX for one of TensorFlow or NumPy; an UnsupportedError if there is none."""
    numpy_dtype = np.dtype(dtype.as_numpy_dtype if isinstance(dtype, tf.DType) else dtype)
    try:
        if numpy_dtype.kind == "c":
            raise TypeError("onnxruntime has no kernels for it")
        return ir.DataType.from_numpy(numpy_dtype)
    except TypeError as error:
        raise UnsupportedError(
            f"lowering writes no {getattr(dtype, 'name', dtype)} to ONNX"
        ) from error


def of_weights(opset: int) -> frozenset[np.dtype]:
    """The dtypes that weights may have beside float16 and integers of 8 bits or more."""
    return frozenset(np.dtype(dtype) for dtype, since in _OF_WEIGHTS.items() if since <= opset)


def computed_in(
    kind: str, dtype: ir.DataType, opset: int, kept: Collection[ir.DataType] = ()
) -> ir.DataType:
    """The dtype in which an op of ONNX is computed for operands of a dtype.

    Args:
      kind: the op.
      dtype: the dtype of the operands.
      opset: the version of the set of operators.
      kept: dtypes in which all ops are computed that the standard has for them.
    """
    if dtype in kept and _has_standard(kind, dtype, opset):
        return dtype
    kernels = _kernels(kind, opset)
    if kernels is None or dtype in kernels:
        return dtype
    if kind in _OF_ORDER and BITS.get(dtype, 64) < 64:
        return DOUBLE
    wider = _WIDER.get(dtype, dtype)
    return wider if wider in kernels else dtype


@functools.cache
def _has_standard(kind: str, dtype: ir.DataType, opset: int) -> bool:
    """Whether the standard has an op for some dtype of its operands."""
    schema = defs.get_schema(kind, opset)
    name = f"tensor({dtype.name.lower()})"
    return any(name in each.types for each in schema.inputs)


@functools.cache
def _kernels(kind: str, opset: int) -> frozenset[ir.DataType] | None:
    """The dtypes of the kernels of an op; None if the op is not in the table."""
    versions = _table().get(kind, {})
    known = [int(version) for version in versions if int(version) <= opset]
    if not known:
        return None
    members = ir.DataType.__members__
    return frozenset(members[name] for name in versions[str(max(known))] if name in members)


@functools.cache
def _table() -> Mapping[str, Mapping[str, Sequence[str]]]:
    return json.loads((ONNX.folder / "kernels.json").read_text())["kernels"]
