"""Windows that slide over an array: their arithmetic, and reductions over them in JAX."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals, jax_compat
from lowering.arrays.computations import Arrays, Combine


@dataclasses.dataclass(frozen=True)
class Window:
    """What a window does along one axis.

    Attributes:
      size: its number of elements.
      stride: the distance between neighbouring windows.
      low, high: how many elements of padding come before and after the array. A negative number
        removes elements.
      base_dilation: the distance between neighbouring elements of the array, spread out by padding.
      dilation: the distance between neighbouring elements of the window.
    """

    size: Any
    stride: int = 1
    low: Any = 0
    high: Any = 0
    base_dilation: int = 1
    dilation: int = 1

    @property
    def is_padding(self) -> bool:
        """Whether it pads the array, also between elements, or removes elements."""
        return (self.low, self.high, self.base_dilation) != (0, 0, 1)

    def is_whole(self, dim: Any) -> bool:
        """Whether the only window is all of an axis of size `dim`, and nothing else."""
        return not self.is_padding and (self.size, self.dilation) == (dim, 1)

    @property
    def extent(self) -> Any:
        """The distance from its first element to the end of its last."""
        return (self.size - 1) * self.dilation + 1

    def padded(self, dim: Any) -> Any:
        """The size of an axis of size `dim` with all padding."""
        return jax_compat.dilate_dim(dim, self.base_dilation) + self.low + self.high

    def count(self, dim: Any) -> Any:
        """The number of windows on an axis of size `dim`."""
        return jax_compat.stride_dim(self.padded(dim), self.extent, self.stride)

    def always_has_elements(self, dim: Any) -> bool:
        """Whether all windows on an axis of size `dim` are known to have more than padding."""
        if avals.is_static((dim, self.low, self.high)):
            return bool(self.has_elements(dim).all())
        has_gaps = (self.base_dilation, self.dilation) != (1, 1)
        return not has_gaps and all(
            avals.is_at_least(big, small)
            for big, small in ((dim, 1), (self.size, self.low + 1), (self.size, self.high + 1))
        )

    def has_elements(self, dim: int) -> np.ndarray:
        """Which of the windows on an axis of size `dim` have more than padding, as booleans."""
        starts = np.arange(self.count(dim)) * self.stride - self.low
        at = starts[:, None] + np.arange(self.size) * self.dilation
        index, offset = np.divmod(at, self.base_dilation)
        return np.any((index >= 0) & (index < dim) & (offset == 0), axis=1)

    def with_room(self, dim: Any) -> "Window":
        """A window with as much more padding at the end as one window on an axis may lack.

        It is the same window where the size `dim` is known to have room for one.
        """
        if avals.is_at_least(self.padded(dim), self.extent):
            return self
        missing = jax_compat.max_dim(self.padded(dim), self.extent) - self.padded(dim)
        return dataclasses.replace(self, high=self.high + missing)


def windows(
    window_dimensions: Sequence[Any],
    window_strides: Sequence[int],
    padding: Sequence[tuple[Any, Any]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> list[Window]:
    """The windows of a primitive, one for each axis."""
    ones = (1,) * len(window_dimensions)
    dilations = (base_dilation or ones, window_dilation or ones)
    axes = zip(window_dimensions, window_strides, padding, *dilations, strict=True)
    return [Window(size, stride, *pair, *both) for size, stride, pair, *both in axes]


# The most elements of a window that are reduced without a loop in the graph.
_UNROLLED = 128
# XLA splits loops over fewer elements than these.
_PEELED = 64
# How many windows without overlap an axis of symbolic size is taken to hold.
_LONG = 8


def fold(
    operands: Arrays, inits: Arrays, combine: Combine, axes: Sequence[Window]
) -> list[jax.Array]:
    """Reduces windows by any function, one element after the other.

    Elements come in the order of XLA on the CPU, and padding is left out. So the function need not
    be associative, and initial values need not be neutral, to give what XLA gives.

    Args:
      operands: arrays of one shape.
      inits: for each operand the scalar with which the reduction of each window begins.
      combine: combines the results so far with the next elements.
      axes: a window for each axis.
    """
    shape = operands[0].shape
    if not shape:
        # XLA returns scalars as they are, without the initial values.
        return list(operands)
    counts = [window.count(dim) for window, dim in zip(axes, shape, strict=True)]
    results = [jnp.broadcast_to(init, counts) for init in inits]
    if 0 in counts:
        return results
    config = [(window.low, window.high, window.base_dilation - 1) for window in axes]
    padded = [lax.pad(x, init, config) for x, init in zip(operands, inits, strict=True)]

    def step(results, offsets):
        mask: jax.Array | bool = True
        for i, (window, offset) in enumerate(zip(axes, offsets, strict=True)):
            inside = _inside(window, shape[i], counts[i], offset)
            if inside is not True:
                mask = mask & jnp.expand_dims(inside, range(1, len(shape) - i))
        values = [elements(x, axes, counts, offsets) for x in padded]
        reduced = combine(results, values)
        if mask is True:
            return list(reduced)
        return [jnp.where(mask, new, old) for new, old in zip(reduced, results, strict=True)]

    sizes = [window.size for window in axes]
    if not avals.is_static(sizes):
        total = jnp.asarray(math.prod(sizes), np.int32)
        return lax.fori_loop(
            np.int32(0), total, lambda i, results: step(results, unravel(i, sizes)), results
        )
    order = _order(axes, shape, counts)
    if len(order) <= _UNROLLED:
        for offsets in order:
            results = step(results, offsets)
        return results
    table = np.array(order, np.int32)
    return lax.scan(lambda results, offsets: (step(results, offsets), None), results, table)[0]


def _order(axes, shape, counts):
    """The offsets of the elements of a window in the order of XLA's loops.

    It is row-major, but for one case: if only the last element along some axis can be padding, XLA
    splits short loops along it, and takes first all elements that need no test for padding.
    """
    offsets = list(itertools.product(*(range(window.size) for window in axes)))
    trips = 1
    for axis in reversed(range(len(axes))):
        window, dim, count = axes[axis], shape[axis], counts[axis]
        trips *= window.size
        if window.size > 1 and _is_peeled(window, dim, count):
            last = window.size - 1
            first = [offset for offset in offsets if offset[axis] < last]
            return first + [offset for offset in offsets if offset[axis] == last]
        if trips >= _PEELED:
            break
    return offsets


def _is_peeled(window, dim, count):
    """Whether XLA takes the last element of a window apart: only it needs a test for padding.

    This depends on the dimension only if it is short, or if there are strides: a symbolic one is
    taken to be long.
    """
    if not avals.is_static((window.low, window.high)):
        return False
    if not avals.is_static([dim]):
        dim = _LONG * max(window.extent, window.stride)
        count = window.count(dim)
    if count == 1:
        return False

    def needs_test(size):
        starts = np.arange(count)[:, np.newaxis] * window.stride - window.low
        positions = starts + np.arange(size) * window.dilation
        inside = (positions >= 0) & (positions <= (dim - 1) * window.base_dilation)
        is_cut = inside.any(axis=1) & ~inside.all(axis=1)
        return bool(is_cut.any()) or (window.base_dilation > 1 and size > 1)

    return needs_test(window.size) and not needs_test(window.size - 1)


def unravel(index, sizes):
    """The offsets of the element that is number `index` in row-major order."""
    offsets = []
    for size in reversed(sizes):
        size = jnp.asarray(size, index.dtype)
        offsets.append(lax.rem(index, size))
        index = lax.div(index, size)
    return offsets[::-1]


def _inside(window, dim, count, offset):
    """Which windows have an element of the array, not padding, at an offset; True if all do."""
    if not window.is_padding:
        return True
    is_static = avals.is_static((dim, count, window.low, offset))
    low, last = window.low, (dim - 1) * window.base_dilation
    if not is_static:
        low, last = jnp.asarray(low, np.int32), jnp.asarray(last, np.int32)
    indices = np.arange(count) if is_static else lax.iota(np.int32, count)
    positions = indices * window.stride + offset * window.dilation - low
    inside = (positions >= 0) & (positions % window.base_dilation == 0) & (positions <= last)
    if is_static:
        return True if inside.all() else jnp.asarray(inside)
    return inside


def elements(x, axes, counts, offsets):
    """The element at an offset of every window of a padded array."""
    spans = [
        jax_compat.dilate_dim(count, window.stride)
        for window, count in zip(axes, counts, strict=True)
    ]
    strides = [window.stride for window in axes]
    starts = [offset * window.dilation for offset, window in zip(offsets, axes, strict=True)]
    if all(isinstance(start, int) for start in starts):
        for axis, (start, span) in enumerate(zip(starts, spans, strict=True)):
            # JAX slices only where it can tell that the slice is inside, and of which size.
            is_inside = avals.is_at_most(start + span, x.shape[axis])
            if not is_inside or jax_compat.stride_dim(span, 1, strides[axis]) != counts[axis]:
                x = _strided(x, axis, start, counts[axis], strides[axis])
                starts[axis], spans[axis], strides[axis] = 0, counts[axis], 1
        limits = [start + span for start, span in zip(starts, spans, strict=True)]
        return lax.slice(x, starts, limits, strides)
    block = lax.dynamic_slice(x, starts, spans)
    return lax.slice(block, [0] * len(spans), spans, strides)


def _strided(x, axis, start, count, stride):
    """`count` elements along an axis, `stride` apart; beyond its end there are zeros."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (-start, start + count * stride - x.shape[axis], 0)
    x = lax.pad(x, jnp.zeros((), x.dtype), config)
    x = lax.reshape(x, (*x.shape[:axis], count, stride, *x.shape[axis + 1 :]))
    return lax.index_in_dim(x, 0, axis + 1, keepdims=False)
