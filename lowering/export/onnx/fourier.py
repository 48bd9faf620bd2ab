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
    made = _transform(b, node, together, {"inverse": 1} if node.type == "IFFT" else {})
    return _parts(b, node, x[0], made)


@op("RFFT", of_any_value=True)
def transform_of_real(b: Builder, node: Any, x: ir.Value, length: ir.Value) -> Parts:
    """The half of the transform of real numbers that determines the rest.

    The other half is cut off: OpenVINO 2026 has an axis too many where the op leaves it out.
    """
    size, known = node.inputs[0].shape[-1], array_of(length)
    if known is None or known.tolist() != [size]:
        raise UnsupportedError(f"{node.name!r} is RFFT of another length than its operand has")
    made = _transform(b, node, b.unsqueeze(x, node.inputs[0].shape.rank), {})
    return _parts(b, node, x, b.slice(made, [0], [size // 2 + 1], [1]))


def _transform(b: Builder, node: Any, x: ir.Value, attributes: dict[str, int]) -> ir.Value:
    """The transform of rows; the last dimension has the real and imaginary parts.

    Rows are the second of three axes: OpenVINO 2026 does not look at the axis that is an operand.
    """
    shape = node.inputs[0].shape
    size = shape[-1]
    if size is None or size < 1 or size & (size - 1):
        raise UnsupportedError(
            f"{node.name!r} is {node.type} of a length that is no power of two, for which "
            "onnxruntime loses digits"
        )
    if shape.rank != 2:
        x = b.reshape(x, [-1, size, 1 if node.type == "RFFT" else 2])
    if b.opset >= _AXIS_IS_OPERAND:
        return b.op("DFT", x, None, b.constant(1, ir.DataType.INT64), **attributes)
    return b.op("DFT", x, axis=1, **attributes)


def _parts(b: Builder, node: Any, x: ir.Value, rows: ir.Value) -> Parts:
    """The real and imaginary parts of the transforms of rows, in the shape of the op's result."""
    shape = node.outputs[0].shape
    real, imag = (
        b.op("Gather", rows, b.constant(i, ir.DataType.INT64), axis=2, dtype=dtype_of(rows))
        for i in range(2)
    )
    if shape.rank == 2:
        return real, imag
    sizes: Any = [-1 if n is None else n for n in shape]
    if sizes.count(-1) > 1:
        lead = b.op("Shape", x, start=0, end=shape.rank - 1)
        sizes = b.concat([lead, b.ints(sizes[-1])])
    return b.reshape(real, sizes), b.reshape(imag, sizes)
