"""Casts between a dtype and its storage dtype, which stay where they are.

An op between a cast and a gather, or a broadcast and a cast, keeps them in order where a converter
would exchange them (`quirks.casts_behind_gathers`, `quirks.broadcasts_behind_casts`).
"""

import tensorflow as tf

from lowering import targets
from lowering.ops import kernels, memo, values
from lowering.ops.emission import cast, emit
from lowering.targets import Quirk
from lowering.targets.tflite import quirks


def widened(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`x` in its storage dtype."""
    result = cast(x, dtype)
    if x.dtype == dtype or _can_move(quirks.casts_behind_gathers, x.dtype, "GatherV2"):
        return result
    return emit("Maximum", result, result)


def narrowed(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`x`, which is in a storage dtype, in its own dtype."""
    source = values.source(x)
    may_move = x.dtype == dtype or _can_move(quirks.broadcasts_behind_casts, dtype, "BroadcastTo")
    has_broadcasts = source is not None and memo.has_op(source.graph, "BroadcastTo")
    if not may_move and has_broadcasts:
        # No broadcast is moved behind a selection by a condition that is not broadcast.
        x = emit("SelectV2", emit("GreaterEqual", x, x), x, x)
    return cast(x, dtype)


def before_narrowed(x: tf.Tensor) -> tf.Tensor:
    """The operand of `narrowed` in a graph, without the op that keeps the cast in its place."""
    source = values.source(x)
    if source is None or source.type != "SelectV2" or source.inputs[1] is not source.inputs[2]:
        return x
    return source.inputs[1]


def _can_move(quirk: Quirk, dtype: tf.DType, op: str) -> bool:
    return not targets.current().has(quirk) or kernels.supports(op, dtype)
