"""Says whether an array is another one whose channels are multiplied by numbers, as norms do."""

from collections.abc import Iterator

import numpy as np

# How far from parallel two channels may be, of which one may be rounded to 16 bits.
_TOLERANCE = 1e-5


def channels(array: np.ndarray) -> Iterator[np.ndarray]:
    """An array as matrices whose rows are its channels, which are along its last axis or another.

    Channels of one number are left out, as these are always multiples of each other.
    """
    for axis in reversed(range(array.ndim)):
        if array.size > array.shape[axis]:
            yield np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)


def are_multiples(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether each row of a matrix is that of another one, of the same shape, times a number."""
    product, of_x, of_y = (
        np.einsum("ij,ij->i", a, b, dtype=np.float64) for a, b in ((x, y), (x, x), (y, y))
    )
    return bool(np.all(product**2 >= (1 - _TOLERANCE) * of_x * of_y))


def is_scaled(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether an array is another one whose channels along an axis are multiplied by numbers."""
    if x.shape != y.shape:
        return False
    return any(map(are_multiples, channels(x), channels(y)))
