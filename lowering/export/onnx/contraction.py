"""Products of matrices."""

from typing import Any

import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of


@op("MatMul")
def matmul(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """A product of two matrices."""
    return _product(b, node, x, y, "transpose_a", "transpose_b")


@op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """Products of stacks of matrices, which are broadcast."""
    return _product(b, node, x, y, "adj_x", "adj_y")


def _product(b: Builder, node: Any, x: ir.Value, y: ir.Value, *transposes: str) -> ir.Value:
    operands = [
        _swapped(b, value, tensor.shape.rank) if node.get_attr(name) else value
        for value, tensor, name in zip((x, y), node.inputs, transposes, strict=True)
    ]
    return b.op("MatMul", *operands)


def _swapped(b: Builder, x: ir.Value, rank: int) -> ir.Value:
    """Transposed matrices."""
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@op("BiasAdd")
def bias_add(b: Builder, node: Any, x: ir.Value, bias: ir.Value) -> ir.Value:
    """A sum with a number for each feature."""
    if node.get_attr("data_format") == b"NCHW":
        bias = b.unsqueeze(bias, *range(1, node.inputs[0].shape.rank - 1))
    return b.op("Add", x, bias)


@op("Einsum")
def einsum(b: Builder, node: Any, *operands: ir.Value) -> ir.Value:
    """Products and sums by the names of axes."""
    return b.op("Einsum", *operands, equation=node.get_attr("equation").decode())


@op("MatrixBandPart")
def band_part(b: Builder, node: Any, x: ir.Value, lower: ir.Value, upper: ir.Value) -> ir.Value:
    """The diagonals of matrices from one to another; a negative number is for all on that side."""
    for count, is_upper in ((array_of(lower), 1), (array_of(upper), 0)):
        number = int(count.item()) if count is not None else 0
        if number >= 0:
            k = b.ints(-number if is_upper else number)
            x = b.op("Trilu", x, b.reshape(k, ()), upper=is_upper)
    return x
