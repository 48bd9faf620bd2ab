"""Weights that were of 16 bits, and are multiplied by factors, in 16 bits again."""

import ml_dtypes
import numpy as np


def rounded(weights: np.ndarray, dtype: np.dtype, axis: int) -> np.ndarray | None:
    """Weights in a dtype of 16 bits; None if they lose more than the last of its digits.

    Small numbers may lose more, beside larger ones of the same feature. Features all of whose
    numbers are subnormal in the dtype, and numbers that are too large for it, lose too much.

    Args:
      weights: numbers in float32.
      dtype: float16 or bfloat16.
      axis: the axis of the features.
    """
    others = tuple(i for i in range(weights.ndim) if i != axis)
    with np.errstate(all="ignore"):
        narrow = weights.astype(dtype)
        errors = np.abs(narrow.astype(weights.dtype) - weights).max(others, initial=0)
    largest = np.abs(weights).max(others, initial=0)
    is_close = np.all(errors <= float(ml_dtypes.finfo(dtype).eps) * largest)
    return narrow if is_close else None
