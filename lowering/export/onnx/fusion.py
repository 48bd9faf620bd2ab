"""Biases and factors of features that become part of the products before them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes, layout
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import (
    array_of,
    dtype_of,
    is_known,
    made_by,
    permutation,
    static,
)


def with_bias(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value | None:
    """A sum as part of the product that is one of its terms, if the other is a bias; else None.

    Nothing else may need the product.
    """
    for tensor, product, bias in ((node.inputs[0], x, y), (node.inputs[1], y, x)):
        if is_known(bias) and _is_alone(tensor):
            found = _conv_with_bias(b, product, bias) or _matmul_with_bias(b, product, bias)
            if found is not None:
                return found
    return None


def _matmul_with_bias(b: Builder, product: ir.Value, bias: ir.Value) -> ir.Value | None:
    """A Gemm, of matrices and a number for each column."""
    node, sizes = product.producer(), static(bias)
    if node is None or node.op_type != "MatMul" or dtype_of(product) not in {*_GEMM, *b.kept}:
        return None
    if product.shape is None or len(product.shape) != 2 or sizes is None:
        return None
    columns = product.shape[1]
    if not sizes or len(sizes) > 2 or sizes != (*[1] * (len(sizes) - 1), columns):
        return None
    operands, attributes = [], {}
    for x, name in zip(node.inputs, ("transA", "transB"), strict=True):
        assert x is not None
        source = made_by(x, "Transpose")
        if source is not None:
            attributes[name] = 1
        operands.append(source or x)
    return b.op("Gemm", *operands, b.reshape(bias, (-1,)), **attributes)


_GEMM = frozenset({dtypes.FLOAT, dtypes.DOUBLE})


def _conv_with_bias(b: Builder, product: ir.Value, bias: ir.Value) -> ir.Value | None:
    """A convolution with a number for each feature."""
    found = _conv(product)
    sizes = static(bias)
    if found is None or sizes is None:
        return None
    conv, perm = found
    weights = conv.inputs[1]
    if weights is None or weights.shape is None:
        return None
    features = weights.shape[0]
    if len(conv.inputs) > 2 or not sizes or sizes != (*[1] * (len(sizes) - 1), features):
        return None
    if len(sizes) > len(perm):
        return None
    return _again(b, conv, perm, weights, b.reshape(bias, (-1,)))


def with_batch_norm(
    b: Builder, node: Any, x: ir.Value, parameters: Sequence[ir.Value], epsilon: float
) -> ir.Value | None:
    """A batch norm as part of the convolution before it, if all weights are known; else None.

    Args:
      b: the builder.
      node: the op of TensorFlow.
      x: its operand.
      parameters: the factors, offsets, means and variances of the features.
      epsilon: what is added to the variances.
    """
    found = _conv(x)
    if found is None or not _is_alone(node.inputs[0]):
        return None
    conv, perm = found
    weights, *rest = conv.inputs[1:]
    arrays = [array_of(p) for p in parameters]
    if weights is None or not is_known(weights) or any(a is None for a in arrays):
        return None
    scale, offset, mean, variance = (np.asarray(a, np.float64) for a in arrays)
    bias = array_of(rest[0]) if rest and rest[0] is not None else np.zeros_like(mean)
    if bias is None:
        return None
    factor = scale / np.sqrt(variance + epsilon)
    new = b.constant(offset + (bias - mean) * factor, dtype_of(x))
    rank = len(perm)
    scaled = b.scaled(weights, factor.reshape(-1, *[1] * (rank - 1)))
    return _again(b, conv, perm, scaled, new)


def _conv(x: ir.Value) -> tuple[ir.Node, list[int]] | None:
    """The convolution that makes an image, and how that is transposed."""
    source = made_by(x, "Transpose")
    if source is None:
        return None
    node = source.producer()
    if node is None or node.op_type != "Conv":
        return None
    return node, permutation(x)


def _again(
    b: Builder, conv: ir.Node, perm: Sequence[int], weights: ir.Value, bias: ir.Value
) -> ir.Value:
    """A convolution with other weights and a bias."""
    attributes = {name: attribute.value for name, attribute in conv.attributes.items()}
    made = b.op("Conv", conv.inputs[0], weights, bias, **attributes)
    made.shape = conv.outputs[0].shape
    return layout.transposed(b, made, perm)


def _is_alone(tensor: Any) -> bool:
    """Whether one op alone reads a tensor, through identities."""
    while True:
        if len(tensor.consumers()) != 1 or any(tensor is x for x in tensor.graph.outputs):
            return False
        if tensor.op.type != "Identity":
            return True
        tensor = tensor.op.inputs[0]
