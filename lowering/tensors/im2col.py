"""The windows of an array as the rows of a matrix (im2col), for convolutions as products."""

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from lowering.arrays.windows import Window
from lowering.context import Context
from lowering.ops import constant, integers
from lowering.tensors import movement


def im2col(ctx: Context, x: tf.Tensor, axes: Sequence[Window]) -> tf.Tensor:
    """The elements of each window of `x` side by side.

    Args:
      ctx: the context of the rule.
      x: [batch, *spatial, features], all of them known.
      axes: the window along each spatial axis; what it adds to the array is zero.

    Returns:
      [batch * windows, elements of a window * features].
    """
    batch, *spatial, features = x.shape.as_list()
    elements = _elements(batch, spatial, axes)
    x = movement.reshape(ctx, x, (batch * math.prod(spatial), features))
    if np.any(elements < 0):
        # The last row is what lies outside.
        x = tf.raw_ops.ConcatV2(values=[x, constant(np.zeros((1, features)), x.dtype)], axis=0)
        elements = np.where(elements < 0, x.shape[0] - 1, elements)
    if not np.array_equal(elements.ravel(), np.arange(x.shape[0])):
        x = tf.raw_ops.GatherV2(params=x, indices=integers(elements.ravel()), axis=integers(0))
    width = math.prod(window.size for window in axes) * features
    return movement.reshape(ctx, x, (elements.size * features // width, width))


def _elements(batch: int, spatial: Sequence[int], axes: Sequence[Window]) -> np.ndarray:
    """Where the elements of the windows are among all of a batch; -1 is outside.

    Its axes are the batch, the windows and the elements of a window.
    """
    rank = len(axes)
    position = np.arange(batch).reshape((batch,) + (1,) * (2 * rank))
    is_inside = np.array(True)
    for i, (dim, window) in enumerate(zip(spatial, axes, strict=True)):
        starts = np.arange(window.count(dim)) * window.stride - window.low
        spread = starts[:, None] + np.arange(window.size) * window.dilation
        others = [axis for axis in range(2 * rank + 1) if axis not in (1 + i, 1 + rank + i)]
        spread = np.expand_dims(spread, others)
        along, between = np.divmod(spread, window.base_dilation)
        is_inside = is_inside & (between == 0) & (along >= 0) & (along < dim)
        position = position * dim + along
    return np.where(is_inside, position, -1)
