"""Reductions over windows by pooling ops.

TensorFlow has pooling kernels for the two middle axes of four. A reshape makes any axes the middle
ones, so reductions of any rank are a few pooling ops: one for each axis, or pair of adjacent axes.
"""

import math
from collections.abc import Callable, Sequence

import jax
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays.windows import Window
from lowering.context import Context
from lowering.tensors import movement

# Reduces windows of axes 1 and 2 of a tensor of four dimensions, given their sizes and strides.
Kernel = Callable[[tf.Tensor, list[int], list[int]], tf.Tensor]


def pool(
    ctx: Context,
    x: tf.Tensor,
    shape: movement.Shape,
    axes: Sequence[Window],
    fill: tf.Tensor,
    kernel: Kernel,
) -> tf.Tensor:
    """Reduces windows that are not empty, one for each axis; `fill` is neutral in the reduction."""
    # An axis of symbolic size may have room for no window, which TensorFlow's ops refuse.
    roomy = [window.with_room(dim) for window, dim in zip(axes, shape, strict=True)]
    if any(new is not old for new, old in zip(roomy, axes, strict=True)):
        pooled = pool(ctx, x, shape, roomy, fill, kernel)
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
            rest = axes[axis + 1 : axis + 2]
            pair = [w for w in rest if w.dilation == 1 and not _is_trivial(w)]
            x, shape = _pool_axes(ctx, x, shape, axis, [axes[axis], *pair], kernel)
            axis += 1 + len(pair)
    return x


def padding_of_images(shape: movement.Shape, axes: Sequence[Window]) -> str | None:
    """The padding of a pooling op that slides over rows and columns; None if there is none."""
    if len(axes) != 4 or axes[0] != Window(1) or axes[3] != Window(1):
        return None
    pairs = [(w.low, w.high) for w in axes[1:3]]
    if any((w.base_dilation, w.dilation) != (1, 1) for w in axes[1:3]):
        return None
    if pairs == [(0, 0)] * 2:
        return "VALID"
    sizes, strides = zip(*((w.size, w.stride) for w in axes[1:3]), strict=True)
    if not avals.is_static(shape[1:3]):
        return None
    return "SAME" if pairs == lax.padtype_to_pads(shape[1:3], sizes, strides, "SAME") else None


def _counts(axes, shape):
    return [window.count(dim) for window, dim in zip(axes, shape, strict=True)]


def _is_trivial(window):
    return isinstance(window.size, int) and (window.size, window.stride) == (1, 1)


def _padded(ctx, x, shape, axes, fill):
    padded = [window.padded(dim) for window, dim in zip(axes, shape, strict=True)]
    paddings = [(window.low, window.high) for window in axes]
    crops = any(isinstance(amount, int) and amount < 0 for pair in paddings for amount in pair)
    if crops or any(window.base_dilation != 1 for window in axes):
        config = tuple((window.low, window.high, window.base_dilation - 1) for window in axes)
        avals = [jax.ShapeDtypeStruct(s, x.dtype.as_numpy_dtype) for s in (tuple(shape), ())]
        return ctx.lower(lax.pad, x, fill, avals=avals, padding_config=config), padded
    return movement.pad(ctx, x, shape, fill, paddings, padded), padded


def _pool_axes(ctx, x, shape, axis, pair, kernel):
    """Pools one axis, or two adjacent ones, of an array without padding."""
    end = axis + len(pair)
    ones = [1] * (2 - len(pair))
    middle = [*shape[axis:end], *ones]
    x = movement.reshape(ctx, x, (math.prod(shape[:axis]), *middle, math.prod(shape[end:])))
    x = kernel(x, [w.size for w in pair] + ones, [w.stride for w in pair] + ones)
    inner = (Window(window.size, window.stride) for window in pair)
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
