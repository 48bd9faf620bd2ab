"""Representative data: inputs that full quantization finds the ranges of numbers with."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from lowering.export.entry import Entry


def inputs(entry: Entry, data: Any) -> list[list[np.ndarray]]:
    """The arrays of each item of representative data, in the dtypes of the exported model.

    Args:
      entry: the function.
      data: an iterable of tuples like its arguments, or a function that returns one.

    Raises:
      TypeError: if the items are not like the arguments.
      ValueError: if there are none, or some have another shape or dtype.
    """
    items = data() if callable(data) else data
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise TypeError(
            "representative_data is an iterable of tuples like args, or a function that returns "
            f"one, not {type(items).__name__}"
        )
    found = [_arrays(entry, item) for item in items]
    if not found:
        raise ValueError("representative_data is empty")
    return found


def _arrays(entry: Entry, item: Any) -> list[np.ndarray]:
    if not isinstance(item, tuple | list):
        raise TypeError(
            f"an item of representative_data is a tuple like args, such as (x,), not "
            f"{type(item).__name__}"
        )
    arrays = entry.inputs(item)
    for spec, x in zip(entry.specs, arrays, strict=True):
        if not spec.shape.is_compatible_with(x.shape):
            sizes = ", ".join("_" if n is None else str(n) for n in spec.shape)
            raise ValueError(
                f"representative_data has an array of the shape {x.shape} for the input "
                f"{spec.name!r}, whose shape is ({sizes})"
            )
    return arrays
