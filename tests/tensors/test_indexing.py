"""Indices that are known when a program is lowered, of any size."""

import jax
import numpy as np
import pytest
from jax import lax

from lowering import convert

WINDOW = lax.ScatterDimensionNumbers((0,), (), (0,))


@pytest.mark.parametrize("index", [-(2**63), -(2**62), -(2**40), -(2**31) - 1, -1, 0, 4, 2**40])
@pytest.mark.parametrize("polymorphic_shapes", [None, ["n + 3", None]])
def test_windows_at_known_indices(index, polymorphic_shapes):
    with jax.enable_x64(True):
        indices = np.array([index], np.int64)

        def fun(x, updates):
            return lax.scatter(x, indices, updates, WINDOW, mode="fill")

        args = np.zeros(7, np.float32), np.arange(1, 4, dtype=np.float32)
        expected = jax.jit(fun)(*args)
        actual = convert(fun, polymorphic_shapes=polymorphic_shapes)(*args)
        np.testing.assert_array_equal(actual, expected)
