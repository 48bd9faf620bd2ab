"""Reductions over windows by pooling ops.

TensorFlow has pooling kernels for the two middle axes of four, and some for the three of five. A
reshape makes any axes the middle ones, so reductions of any rank are a few pooling ops: one for
each axis, or for two or three adjacent axes.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import jax
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays.windows import Window
from lowering.context import Context
from lowering.tensors import movement

# Reduces windows of all axes of a tensor but the first and the last, given their sizes and strides.
Kernel = Callable[[tf.Tensor, list[int], list[int]], tf.Tensor]


def pool(
    ctx: Context,
    x: tf.Tensor,
    shape: movement.Shape,
    axes: Sequence[Window],
    fill: tf.Tensor,
    kernel: Kernel,
    most: int = 2,
) -> tf.Tensor:
    """Reduces windows that are not empty, one for each axis.

    Args:
      fill: what is neutral in the reduction.
      kernel: what reduces windows of adjacent axes.
      most: how many axes it takes at most; it takes two at least.
    """
    # An axis of symbolic size may have room for no window, which TensorFlow's ops refuse.
    roomy = [window.with_room(dim) for window, dim in zip(axes, shape, strict=True)]
    if any(new is not old for new, old in zip(roomy, axes, strict=True)):
        pooled = pool(ctx, x, shape, roomy, fill, kernel, most)
        made, counts = _counts(roomy, shape), _counts(axes, shape)
        return movement.slice_(ctx, pooled, made, [0] * len(counts), counts)
    x, shape = _padded(ctx, x, shape, axes, fill)
    axis = 0
    while axis < len(axes):
        if _is_trivial(axes[axis]):
            axis += 1
        elif axes[axis].dilation != 1:
            x, shape = _pool_dilated(ctx, x, shape, axis, axes[axis], fill, kernel)
            axis += 1
        else:
            adjacent = list(itertools.takewhile(_is_undilated, axes[axis : axis + most]))
            x, shape = _pool_axes(ctx, x, shape, axis, adjacent, kernel)
            axis += len(adjacent)
    return x


def padding_of_images(shape: movement.Shape, axes: Sequence[Window]) -> str | None:
    """The padding of a pooling op that slides over all axes but the first and the last, or None."""
    if len(axes) < 3 or axes[0] != Window(1) or axes[-1] != Window(1):
        return None
    spatial = axes[1:-1]
    pairs = [(w.low, w.high) for w in spatial]
    if any((w.base_dilation, w.dilation) != (1, 1) for w in spatial):
        return None
    if pairs == [(0, 0)] * len(spatial):
        return "VALID"
    sizes, strides = zip(*((w.size, w.stride) for w in spatial), strict=True)
    if not avals.is_static(shape[1:-1]):
        return None
    return "SAME" if pairs == lax.padtype_to_pads(shape[1:-1], sizes, strides, "SAME") else None


def _counts(axes, shape):
    return [window.count(dim) for window, dim in zip(axes, shape, strict=True)]


def _is_trivial(window):
    return isinstance(window.size, int) and (window.size, window.stride) == (1, 1)


def _is_undilated(window):
    return window.dilation == 1 and not _is_trivial(window)


def _padded(ctx, x, shape, axes, fill):
    padded = [window.padded(dim) for window, dim in zip(axes, shape, strict=True)]
    paddings = [(window.low, window.high) for window in axes]
    crops = any(isinstance(amount, int) and amount < 0 for pair in paddings for amount in pair)
    if crops or any(window.base_dilation != 1 for window in axes):
        config = tuple((window.low, window.high, window.base_dilation - 1) for window in axes)
        avals = [jax.ShapeDtypeStruct(s, x.dtype.as_numpy_dtype) for s in (tuple(shape), ())]
        return ctx.lower(lax.pad, x, fill, avals=avals, padding_config=config), padded
    return movement.pad(ctx, x, shape, fill, paddings, padded), padded


def _pool_axes(ctx, x, shape, axis, adjacent, kernel):
    """Pools adjacent axes of an array without padding; a single one gets another behind it."""
    end = axis + len(adjacent)
    ones = [1] * (2 - len(adjacent))
    middle = [*shape[axis:end], *ones]
    x = movement.reshape(ctx, x, (math.prod(shape[:axis]), *middle, math.prod(shape[end:])))
    x = kernel(x, [w.size for w in adjacent] + ones, [w.stride for w in adjacent] + ones)
    inner = (Window(window.size, window.stride) for window in adjacent)
    counts = [w.count(dim) for w, dim in zip(inner, shape[axis:end], strict=True)]
    shape = [*shape[:axis], *counts, *shape[end:]]
    return movement.reshape(ctx, x, shape), shape


def _pool_dilated(ctx, x, shape, axis, window, fill, kernel):
    """Pools one axis: a reshape makes the elements of each window neighbours."""

    def with_sizes(*sizes):
        return [*shape[:axis], *sizes, *shape[axis + 1 :]]

    dim, dilation = shape[axis], window.dilation
    rows = -(-dim // dilation)
    paddings = [(0, rows * dilation - dim if i == axis else 0) for i in range(len(shape))]
    x = movement.pad(ctx, x, shape, fill, paddings, with_sizes(rows * dilation))
    split = with_sizes(rows, dilation)
    x = movement.reshape(ctx, x, split)
    x, split = _pool_axes(ctx, x, split, axis, [Window(window.size)], kernel)
    merged = with_sizes(split[axis] * dilation)
    x = movement.reshape(ctx, x, merged)
    # Removes the windows that reach into the padding, and those that the stride skips.
    sizes = with_sizes(dim - window.extent + 1)
    x = movement.slice_(ctx, x, merged, [0] * len(shape), sizes)
    if window.stride == 1:
        return x, sizes
    return _pool_axes(ctx, x, sizes, axis, [Window(1, window.stride)], kernel)
