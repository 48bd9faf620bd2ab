"""Pads arrays to even sizes, for kernels that read past an odd number of elements.

They are those of products of matrices (`quirks.products_of_odd_sizes`), if both have been computed,
and of scatters (`quirks.scatters_of_odd_sizes`).
"""

import numpy as np
import tensorflow as tf

from lowering import targets
from lowering.ops import ranks
from lowering.ops.constants import constant, integers, is_weight, vector
from lowering.ops.emission import emit
from lowering.targets.tfjs import quirks


def contracted(x: tf.Tensor, y: tf.Tensor, x_axis: int, y_axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The operands of a contraction, with zeros after the axes that are contracted, if need be.

    With a constant operand there is no need, as zeros follow it in memory.
    """
    has_quirk = targets.current().has(quirks.products_of_odd_sizes)
    if not has_quirk or x.dtype != tf.float32 or is_weight(x) or is_weight(y):
        return x, y
    return padded(x, x_axis), padded(y, y_axis)


def padded(x: tf.Tensor, axis: int) -> tf.Tensor:
    """`x`, with zeros after its elements along an axis of odd size."""
    size, axis = x.shape[axis], axis % x.shape.rank
    if size is not None and size % 2 == 0:
        return x
    if x.shape.rank > targets.current().max_rank("PadV2"):
        return ranks.along_axis(lambda merged: padded(merged, 1), x, axis)
    after: list[int | tf.Tensor] = [0] * x.shape.rank
    after[axis] = 1 if size is not None else _parity(x, axis)
    paddings = [n for m in after for n in (0, m)]
    if size is not None:
        pairs = integers(np.array(paddings).reshape(-1, 2))
    else:
        pairs = emit("Reshape", vector(paddings), integers([-1, 2]))
    return emit("PadV2", x, pairs, constant(0, x.dtype))


def _parity(x: tf.Tensor, axis: int) -> tf.Tensor:
    """The remainder of a size that is not known, divided by two."""
    first = constant(0, np.int32)
    size = emit("GatherV2", emit("Shape", x), constant(axis, np.int32), first)
    return emit("FloorMod", size, constant(2, np.int32))
