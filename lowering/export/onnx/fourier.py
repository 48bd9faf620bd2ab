"""Fourier transforms, of which onnxruntime computes those of powers of two fast and exactly."""

from typing import Any

import onnx_ir as ir

from lowering.errors import UnsupportedError
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.parts import Parts
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of, dtype_of

# Since this version the axis is an operand.
_AXIS_IS_OPERAND = 20


@op("FFT", "IFFT", of_any_value=True)
def transform(b: Builder, node: Any, x: Parts) -> Parts:
    """The transform of complex numbers along the last axis."""
    rank = node.inputs[0].shape.rank
    together = b.concat([b.unsqueeze(part, rank) for part in x], rank)
    return _transform(b, node, together, {"inverse": 1} if node.type == "IFFT" else {})


@op("RFFT", of_any_value=True)
def transform_of_real(b: Builder, node: Any, x: ir.Value, length: ir.Value) -> Parts:
    """The half of the transform of real numbers that determines the rest."""
    size, known = node.inputs[0].shape[-1], array_of(length)
    if known is None or known.tolist() != [size]:
        raise UnsupportedError(f"{node.name!r} is RFFT of another length than its operand has")
    return _transform(b, node, b.unsqueeze(x, node.inputs[0].shape.rank), {"onesided": 1})


def _transform(b: Builder, node: Any, x: ir.Value, attributes: dict[str, int]) -> Parts:
    """The transform of an array with the parts of numbers in its last dimension."""
    shape = node.inputs[0].shape
    if shape[-1] is None or shape[-1] < 1 or shape[-1] & (shape[-1] - 1):
        raise UnsupportedError(
            f"{node.name!r} is {node.type} of a length that is no power of two, for which "
            "onnxruntime loses digits"
        )
    # The first dimension is that of batches.
    axis = shape.rank - 1
    batched = x if axis else b.unsqueeze(x, 0)
    if b.opset >= _AXIS_IS_OPERAND:
        number = b.constant(max(axis, 1), ir.DataType.INT64)
        made = b.op("DFT", batched, None, number, **attributes)
    else:
        made = b.op("DFT", batched, axis=max(axis, 1), **attributes)
    made = made if axis else b.squeeze(made, 0)
    real, imag = (
        b.op("Gather", made, b.constant(i, ir.DataType.INT64), axis=shape.rank, dtype=dtype_of(x))
        for i in range(2)
    )
    return real, imag
