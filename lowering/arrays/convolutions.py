"""Convolutions by simpler primitives: in the dtypes and ranks that TensorFlow has no kernel for."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals
from lowering.arrays.windows import Window, elements, unravel

# A result with at most so many positions may be computed by a contraction for each of them.
_FEW = 64


def convolve(lhs: jax.Array, rhs: jax.Array, axes: Sequence[Window], groups: int) -> jax.Array:
    """Convolves without padding and base dilation.

    Args:
      lhs: [batch, ..., features]; not of low precision.
      rhs: [..., features of a group, features], of the same dtype.
      axes: the window along each spatial axis.
      groups: the number of groups of features.

    Returns:
      [batch, ..., features].
    """
    counts = [window.count(dim) for window, dim in zip(axes, lhs.shape[1:-1], strict=True)]
    shape = (lhs.shape[0], *counts, rhs.shape[-1])
    if 0 in (*lhs.shape, *rhs.shape, *shape):
        return jnp.zeros(shape, lhs.dtype)
    is_known = avals.is_static(rhs.shape[-2:])
    if not is_known and avals.is_static(counts) and math.prod(counts) <= _FEW:
        return _convolve_by_positions(lhs, rhs, axes, groups, counts)
    # TensorFlow has kernels for two spatial axes. Along others, the elements of a window become
    # features, so that one contraction of features takes the place of the convolution. Not all
    # runtimes have kernels for unknown numbers of features.
    left = 2 if lhs.dtype == np.float32 and is_known else 0
    if not avals.is_static([window.size for window in axes[: max(len(axes) - left, 0)]]):
        return _convolve_symbolic(lhs, rhs, axes, groups, counts)
    lhs = lhs.reshape(*lhs.shape[:-1], groups, lhs.shape[-1] // groups)
    while len(axes) > left:
        axis = lhs.ndim - 2 - len(axes)
        lhs = _patches(lhs, axis, axes[0], counts[-len(axes)])
        rhs = jnp.moveaxis(rhs, 0, -3)
        rhs = rhs.reshape(*rhs.shape[:-3], rhs.shape[-3] * rhs.shape[-2], rhs.shape[-1])
        axes = axes[1:]
    if not axes:
        return _contract(lhs, rhs, groups).reshape(shape)
    batch, spatial = lhs.shape[: -2 - len(axes)], lhs.shape[-2 - len(axes) : -2]
    lhs = lhs.reshape(math.prod(batch), *spatial, groups * lhs.shape[-1])
    first, *middle, last = range(lhs.ndim)
    out = lax.conv_general_dilated(
        lhs,
        rhs,
        [window.stride for window in axes],
        "VALID",
        rhs_dilation=[window.dilation for window in axes],
        dimension_numbers=lax.ConvDimensionNumbers(
            (first, last, *middle), (last, last - 1, *range(len(axes))), (first, last, *middle)
        ),
        feature_group_count=groups,
    )
    return out.reshape(shape)


def _patches(lhs, axis, window, count):
    """Concatenates the elements of each window along an axis in the last axis."""
    axes = [window if i == axis else Window(1) for i in range(lhs.ndim)]
    counts = [count if i == axis else dim for i, dim in enumerate(lhs.shape)]
    offsets = ([j if i == axis else 0 for i in range(lhs.ndim)] for j in range(window.size))
    return jnp.concatenate([elements(lhs, axes, counts, o) for o in offsets], axis=-1)


def _convolve_symbolic(lhs, rhs, axes, groups, counts):
    """A loop over the elements of a window, whose size is symbolic."""
    sizes = [window.size for window in axes]
    batch, features, zero = lhs.shape[0], lhs.shape[-1], np.int32(0)

    def step(i, out):
        offsets = unravel(i, sizes)
        around = [Window(1), *axes, Window(1)], [batch, *counts, features]
        x = elements(lhs, *around, [zero, *offsets, zero])
        x = x.reshape(batch, *counts, groups, features // groups)
        block = [1] * len(axes) + [*rhs.shape[-2:]]
        weights = lax.dynamic_slice(rhs, [*offsets, zero, zero], block)
        return out + _contract(x, weights.reshape(rhs.shape[-2:]), groups).reshape(out.shape)

    total = jnp.asarray(math.prod(sizes), np.int32)
    zeros = jnp.zeros((batch, *counts, rhs.shape[-1]), lhs.dtype)
    return lax.fori_loop(zero, total, step, zeros)


def _convolve_by_positions(lhs, rhs, axes, groups, counts):
    """A contraction for each element of the result: in the gradient of a filter they are few."""
    rank = len(axes)
    lhs = lhs.reshape(*lhs.shape[:-1], groups, lhs.shape[-1] // groups)
    rhs = rhs.reshape(*rhs.shape[:-1], groups, rhs.shape[-1] // groups)
    contracted = (*range(1, rank + 1), rank + 2), (*range(rank + 1),)
    numbers = contracted, ((rank + 1,), (rank + 1,))
    steps = (1, *(window.dilation for window in axes), 1, 1)
    parts = []
    for position in np.ndindex(*counts):
        starts = [i * window.stride for i, window in zip(position, axes, strict=True)]
        stops = [start + window.extent for start, window in zip(starts, axes, strict=True)]
        x = lax.slice(lhs, (0, *starts, 0, 0), (lhs.shape[0], *stops, *lhs.shape[-2:]), steps)
        part = jnp.moveaxis(lax.dot_general(x, rhs, numbers), 0, 1)
        parts.append(part.reshape(part.shape[0], -1))
    return jnp.stack(parts, 1).reshape(lhs.shape[0], *counts, -1)


def _contract(lhs, rhs, groups):
    """[..., groups, k], [k, groups * n] -> [..., groups, n]."""
    if groups == 1:
        return lax.dot_general(lhs, rhs, (((lhs.ndim - 1,), (0,)), ((), ())))
    rhs = rhs.reshape(rhs.shape[0], groups, rhs.shape[1] // groups)
    out = lax.dot_general(lhs, rhs, (((lhs.ndim - 1,), (0,)), ((lhs.ndim - 2,), (1,))))
    return jnp.moveaxis(out, 0, -2)
