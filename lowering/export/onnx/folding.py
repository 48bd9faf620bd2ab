"""Ops of known operands, which are computed while a model is written.

Functions of TensorFlow compute axes and sizes by ops, where ONNX wants constants. Layers compute
numbers of their features by ops, of weights that are constants in the model.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from lowering.export.onnx.values import array_of

# Ops on at most so many elements of these dtypes are computed by TensorFlow.
_FEW = 64
_OF_SIZES = frozenset({tf.int32, tf.int64, tf.bool})

# Ops on at most so many elements, more than layers have features, are computed by NumPy.
_OF_FEATURES = 1 << 14

# Ops of ONNX on each element of floats, which NumPy computes in the same dtype.
_OF_FLOATS: Mapping[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Div": np.divide,
    "Equal": np.equal,
    "Exp": np.exp,
    "Floor": np.floor,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Log": np.log,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Pow": np.power,
    "Reciprocal": np.reciprocal,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Tanh": np.tanh,
    "Where": np.where,
}


def computed(tf_op: Any, operands: Sequence[Any]) -> list[np.ndarray] | None:
    """The results of an op of few integers or booleans; None if they are not known."""
    if not operands or not _is_plain(tf_op):
        return None
    arrays = [array_of(x) if isinstance(x, ir.Value) else None for x in operands]
    if any(x is None or x.size > _FEW for x in arrays):
        return None
    with tf.Graph().as_default() as graph:
        given = [tf.constant(a, x.dtype) for a, x in zip(arrays, tf_op.inputs, strict=True)]
        made = graph.create_op(tf_op.type, given, attrs=dict(tf_op.node_def.attr))
        with tf.compat.v1.Session(graph=graph) as session:
            return [np.asarray(x) for x in session.run(made.outputs)]


def of_floats(kind: str, operands: Sequence[ir.Value | None]) -> np.ndarray | None:
    """The result of an op of ONNX on constant floats, if it makes the model no larger.

    Args:
      kind: the op.
      operands: its operands.

    Returns:
      The array, in the dtype of the op's result; None for other ops and dtypes, for operands that
      are not constant, and for a result that is large or larger than all operands.
    """
    function = _OF_FLOATS.get(kind)
    if function is None or any(x is None or not _is_small_float(x, kind) for x in operands):
        return None
    arrays = [array_of(x) for x in operands if x is not None]
    known = [x for x in arrays if x is not None]
    if len(known) < len(operands):
        return None
    size = np.broadcast_shapes(*(x.shape for x in known))
    if np.prod(size) > max(_FEW, *(x.size for x in known)):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(function(*known))


def _is_small_float(x: ir.Value, kind: str) -> bool:
    """Whether a value is a small constant of floats, or of booleans as the condition of a Where."""
    if x.const_value is None or x.dtype is None or x.const_value.size > _OF_FEATURES:
        return False
    return x.dtype.is_floating_point() or (kind == "Where" and x.dtype == ir.DataType.BOOL)


def _is_plain(tf_op: Any) -> bool:
    """Whether an op has the same few integers or booleans as results each time."""
    return (
        tf_op.type != "Identity"
        and not tf_op.op_def.is_stateful
        and not any("func" in attribute.type for attribute in tf_op.op_def.attr)
        and all(x.dtype in _OF_SIZES for x in (*tf_op.inputs, *tf_op.outputs))
        and all((x.shape.num_elements() or 0) <= _FEW for x in tf_op.outputs)
    )
