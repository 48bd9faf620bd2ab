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

# The key of how many ops of a graph have been looked at, and whether one of them is a broadcast.
_BROADCASTS = "broadcasts"


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
    if not may_move and _has_broadcasts(source):
        # No broadcast is moved behind a selection by a condition that is not broadcast.
        x = emit("SelectV2", emit("GreaterEqual", x, x), x, x)
    return cast(x, dtype)


def before_narrowed(x: tf.Tensor) -> tf.Tensor:
    """The operand of `narrowed` in a graph, without the op that keeps the cast in its place."""
    source = values.source(x)
    if source is None or source.type != "SelectV2" or source.inputs[1] is not source.inputs[2]:
        return x
    return source.inputs[1]


def _has_broadcasts(source: tf.Operation | None) -> bool:
    """Whether there is a broadcast in the graph of an op; of its ops, only new ones are asked."""
    if source is None:
        return False
    kept, ops = memo.of(source.graph), source.graph.get_operations()
    known, found = kept.get(_BROADCASTS, (0, False))
    found = found or any(op.type == "BroadcastTo" for op in ops[known:])
    kept[_BROADCASTS] = len(ops), found
    return found


def _can_move(quirk: Quirk, dtype: tf.DType, op: str) -> bool:
    return not targets.current().has(quirk) or kernels.supports(op, dtype)
