"""Ops of known integers, which TensorFlow computes while a model is written.

Functions of TensorFlow compute axes and sizes by ops, where ONNX wants constants.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from lowering.export.onnx.values import array_of

# Of so many elements and these dtypes, operands and results are computed.
_FEW = 64
_OF_SIZES = frozenset({tf.int32, tf.int64, tf.bool})


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


def _is_plain(tf_op: Any) -> bool:
    """Whether an op has the same few integers or booleans as results each time."""
    return (
        tf_op.type != "Identity"
        and not tf_op.op_def.is_stateful
        and not any("func" in attribute.type for attribute in tf_op.op_def.attr)
        and all(x.dtype in _OF_SIZES for x in (*tf_op.inputs, *tf_op.outputs))
        and all((x.shape.num_elements() or 0) <= _FEW for x in tf_op.outputs)
    )
