"""Complex numbers, which stand for their real and imaginary parts: ONNX has none."""

from typing import Any

import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import op

Parts = tuple[ir.Value, ir.Value]


@op("Complex")
def join(b: Builder, node: Any, real: ir.Value, imag: ir.Value) -> Parts:
    """The numbers with some parts."""
    return real, imag


@op("Real", of_any_value=True)
def real(b: Builder, node: Any, x: Parts) -> ir.Value:
    """The real parts."""
    return x[0]


@op("Imag", of_any_value=True)
def imag(b: Builder, node: Any, x: Parts) -> ir.Value:
    """The imaginary parts."""
    return x[1]
