"""Casts between a dtype and the one that holds it, which stay where they are.

The converter of TF Lite moves a cast behind a gather, and before a broadcast, where it then finds
no kernel for the narrower dtype. An op between the two keeps them in order.
"""

import tensorflow as tf

from lowering import targets
from lowering.ops import kernels, values
from lowering.ops.emission import cast, emit
from lowering.targets import TFLITE


def widened(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`x` in the dtype that holds it."""
    result = cast(x, dtype)
    if x.dtype == dtype or _can_move(x.dtype, "GatherV2"):
        return result
    return emit("Maximum", result, result)


def narrowed(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """What is held in another dtype, in its own."""
    source = values.source(x)
    if x.dtype != dtype and not _can_move(dtype, "BroadcastTo") and _has_broadcasts(source):
        # The converter moves a broadcast behind ops whose operands are all broadcast. A selection
        # by a condition that is not stays.
        x = emit("SelectV2", emit("GreaterEqual", x, x), x, x)
    return cast(x, dtype)


def beside_constant(x: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """`x` to be compared with `other`, with an op after it if bools are compared with a constant.

    The converter knows that bools are cast to 0 or 1. Where this decides a comparison, it puts
    `ZerosLike` of the bools in its place, which TF Lite has for numbers only.
    """
    source, beside = values.source(x), values.source(other)
    is_bool = source is not None and source.type == "Cast" and source.inputs[0].dtype == tf.bool
    is_beside = beside is not None and beside.type == "Const"
    return emit("Maximum", x, x) if is_bool and is_beside else x


def _has_broadcasts(source: tf.Operation | None) -> bool:
    """Whether there is a broadcast in the graph of an op."""
    return source is not None and any(
        op.type == "BroadcastTo" for op in source.graph.get_operations()
    )


def _can_move(dtype: tf.DType, op: str) -> bool:
    return targets.current() is not TFLITE or kernels.supports(op, dtype)
