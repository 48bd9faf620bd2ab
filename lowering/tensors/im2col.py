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
    """The elements of each window side by side: [batch * windows, elements of a window * features].

    `x` is [batch, *spatial, features], of known dimensions, and has a window along each spatial
    axis. It is padded with zeros.
    """
    batch, *spatial, features = x.shape.as_list()
    elements = _elements(batch, spatial, axes)
    x = movement.reshape(ctx, x, (batch * math.prod(spatial), features))
    if np.any(elements < 0):
        # A last row of zeros stands for all elements outside of `x`.
        x = tf.raw_ops.ConcatV2(values=[x, constant(np.zeros((1, features)), x.dtype)], axis=0)
        elements = np.where(elements < 0, x.shape[0] - 1, elements)
    if not np.array_equal(elements.ravel(), np.arange(x.shape[0])):
        x = tf.raw_ops.GatherV2(params=x, indices=integers(elements.ravel()), axis=integers(0))
    width = math.prod(window.size for window in axes) * features
    return movement.reshape(ctx, x, (elements.size * features // width, width))


def _elements(batch: int, spatial: Sequence[int], axes: Sequence[Window]) -> np.ndarray:
    """The position in [batch, *spatial] of each element of each window; -1 if it is outside.

    The result has an axis for the batch, then one of windows and one of their elements for each
    spatial axis.
    """
    rank = len(axes)
    position = np.arange(batch).reshape((batch,) + (1,) * (2 * rank))
    is_inside = np.array(True)
    for i, (dim, window) in enumerate(zip(spatial, axes, strict=True)):
        starts = np.arange(window.count(dim)) * window.stride - window.low
        dilated = starts[:, None] + np.arange(window.size) * window.dilation
        others = [axis for axis in range(2 * rank + 1) if axis not in (1 + i, 1 + rank + i)]
        index, between = np.divmod(np.expand_dims(dilated, others), window.base_dilation)
        is_inside = is_inside & (between == 0) & (index >= 0) & (index < dim)
        position = position * dim + index
    return np.where(is_inside, position, -1)
