"""Weights that are integers of eight bits or fewer, times a factor for each channel.

Quantized models multiply their weights by scales. Converters compute the product, which then takes
32 bits; the integers and the factors are found in it again.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

# The largest integers of channels: those of 8 and 4 bits first, as the largest weight mostly is one
# of them, and then all others.
_LARGEST = tuple(dict.fromkeys((127, 7, 128, 8, *range(1, 129))))

# So many channels, and numbers of each, are looked at first.
_SAMPLE = 16, 64
# The fewest numbers that a channel has.
_FEWEST = 8
# How far a product of a float32 and an integer of eight bits is from that integer.
_NEAR = 1e-4


@dataclasses.dataclass(frozen=True)
class Scaled:
    """An array as int8 integers times factors; in float32, the products equal it bit by bit.

    Attributes:
      integers: int8, of the shape of the array.
      scales: a float32 for each channel.
      axis: the axis of the channels.
    """

    integers: np.ndarray
    scales: np.ndarray
    axis: int


def scaled(x: np.ndarray) -> Scaled | None:
    """A matrix or filter as integers times a factor for each channel; None if it is not one.

    Args:
      x: float32, with two axes or more. Channels are the first axis or the last one.
    """
    if x.ndim < 2 or not np.isfinite(x).all():
        return None
    for axis in (0, x.ndim - 1):
        by_channel = np.moveaxis(x, axis, 0)
        if x.size < _FEWEST * len(by_channel):
            continue  # The factors take more than is saved.
        if _may_be(by_channel) and (found := _in_blocks(by_channel)) is not None:
            integers, scales = found
            return Scaled(np.ascontiguousarray(np.moveaxis(integers, 0, axis)), scales, axis)
    return None


def _may_be(x: np.ndarray) -> bool:
    """Whether a sample of the numbers are such products; channels are the first axis."""
    rows = x[:: max(1, len(x) // _SAMPLE[0])]
    rows = rows.reshape(len(rows), -1)
    return _by_row(rows[:, :: max(1, rows.shape[1] // _SAMPLE[1])], rows) is not None


def _in_blocks(x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The integers and the factors of the channels, computed block by block to save memory."""
    integers, scales = np.zeros(x.shape, np.int8), np.ones(len(x), np.float32)
    for start in range(0, len(x), _SAMPLE[1]):
        block = slice(start, start + _SAMPLE[1])
        rows = x[block].reshape(len(x[block]), -1)
        found = _by_row(rows, rows)
        if found is None:
            return None
        integers[block], scales[block] = found[0].reshape(x[block].shape), found[1]
    return integers, scales


def _by_row(rows: np.ndarray, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The integers and the factor of each row; `rows` may be a sample of the columns of `whole`."""
    peaks = np.abs(whole).max(1, initial=0)
    scales = np.ones(len(rows), np.float32)
    integers = np.zeros(rows.shape, np.int8)
    open_rows = np.flatnonzero(peaks)
    for largest in _LARGEST:
        if not len(open_rows):
            break
        ratios = rows[open_rows] * (np.float32(largest) / peaks[open_rows, None])
        nearest = np.rint(ratios)
        for i in np.flatnonzero((np.abs(ratios - nearest) < _NEAR).all(1) & (nearest.max(1) < 128)):
            row = open_rows[i]
            scale = _scale(rows[row], nearest[i], peaks[row] / np.float32(largest))
            if scale is not None:
                integers[row], scales[row] = nearest[i], scale
                peaks[row] = 0
        open_rows = np.flatnonzero(peaks)
    is_same = (integers * scales[:, None]).view(np.int32) == rows.view(np.int32)
    return None if len(open_rows) or not is_same.all() else (integers, scales)


def _scale(row: np.ndarray, integers: np.ndarray, near: np.float32) -> np.float32 | None:
    """The factor, near an estimate, by which the integers become the row; None if there is none."""
    candidates: Sequence[np.float32] = (
        near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf))
    )  # fmt: skip
    small = integers.astype(np.float32)
    return next((scale for scale in candidates if np.array_equal(small * scale, row)), None)
