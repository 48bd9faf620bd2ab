"""Activations of products of matrices, which a converter would lose.

See `tflite.quirks.activations_of_products`.
"""

from typing import Any

import tensorflow as tf

from lowering import targets
from lowering.ops import making
from lowering.ops.swapped import is_constant
from lowering.targets.tflite import quirks

_ACTIVATIONS = frozenset({"Relu", "Relu6", "Maximum", "Minimum"})
_PRODUCTS = {"MatMul": ("transpose_a", "transpose_b"), "BatchMatMulV2": ("adj_x", "adj_y")}
# The converter moves an activation to the front of these.
_VIEWS = frozenset("ExpandDims Identity Reshape Squeeze Transpose".split())


def are_lost(op: str, operands: tuple[Any, ...]) -> bool:
    """Whether the converter may lose an op on a product of two matrices that are computed."""
    if op not in _ACTIVATIONS or not targets.current().has(quirks.activations_of_products):
        return False
    return any(map(_is_of_product, operands))


def with_more_axes(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands, where products have an axis more: the converter leaves those alone."""
    return tuple(_of_more_axes(x) if _is_of_product(x) else x for x in operands)


def _is_of_product(x: Any) -> bool:
    while tf.is_symbolic_tensor(x) and x.op.type in _VIEWS:
        x = x.op.inputs[0]
    if not tf.is_symbolic_tensor(x) or x.op.type not in _PRODUCTS or x.shape.rank != 2:
        return False
    return not any(map(is_constant, x.op.inputs))


def _of_more_axes(x: tf.Tensor) -> tf.Tensor:
    first, *others = x.op.inputs
    if x.op.type in _VIEWS:
        return making.again(x, [_of_more_axes(first), *others])
    adj_x, adj_y = (x.op.get_attr(name) for name in _PRODUCTS[x.op.type])
    product = tf.raw_ops.BatchMatMulV2(
        x=tf.expand_dims(first, 0), y=others[0], adj_x=adj_x, adj_y=adj_y
    )
    return tf.squeeze(product, [0])
