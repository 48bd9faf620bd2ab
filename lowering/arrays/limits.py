"""The lowest and the highest value of a dtype."""

from typing import Any

import numpy as np


def lowest(dtype: Any) -> Any:
    """The value that no value of a dtype is less than."""
    if dtype == np.bool_:
        return False
    if np.issubdtype(dtype, np.integer):
        return np.iinfo(dtype).min
    return complex(-np.inf, -np.inf) if np.issubdtype(dtype, np.complexfloating) else -np.inf


def highest(dtype: Any) -> Any:
    """The value that no value of a dtype exceeds."""
    if dtype == np.bool_:
        return True
    return np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else -lowest(dtype)
