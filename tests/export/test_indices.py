"""Slices, gathers and scatters in runtimes, with data and indices of several dtypes.

Runtimes hold unsigned indices in int32, where the greatest ones have the bits of negative numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.boundary.models import as_logical
from lowering.export import runtimes
from lowering.export.entries import entry
from lowering.targets import CONSUMERS, TARGETS

DATA = ("float16", "uint32", "int8", "float32")
MODES = {"clip": lax.GatherScatterMode.CLIP, "fill": lax.GatherScatterMode.FILL_OR_DROP}
SCATTERS = (lax.scatter, lax.scatter_add, lax.scatter_max)
ROWS = lax.ScatterDimensionNumbers((), (0,), (0,))


def results(x, index):
    """What is read and written of a vector of five at four indices."""
    updates = jnp.arange(4).astype(x.dtype)
    for name, mode in MODES.items():
        yield x.at[index].get(mode=name)
        yield from (scatter(x, index[:, None], updates, ROWS, mode=mode) for scatter in SCATTERS)
    for i in (index[0], index[1]):
        yield lax.dynamic_slice(x, (i,), (2,))
        yield lax.dynamic_update_slice(x, updates[:2], (i,))


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("dtype", ["uint32", "int8"])
def test_indices(dtype, consumer):
    limits = np.iinfo(dtype)
    index = np.array([limits.max, 3, limits.min, 1], dtype)
    x = np.float32([1, 2, 100, 0, 7])

    def fun(x, index):
        return [list(results(x.astype(of), index)) for of in DATA]

    expected = jax.tree.leaves(jax.jit(fun)(x, index))
    made = entry(fun, (x, index), TARGETS[consumer])
    for found in runtimes.run(consumer, made).values():
        for output, e, a in zip(made.outputs, expected, found, strict=True):
            np.testing.assert_array_equal(as_logical(a, made.dtypes[output]), e, err_msg=output)


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_products_with_one_hot_vectors(consumer):
    """A vector without a one chooses no row, as of labels that count for nothing."""
    index = np.int32([[0, 3, 7], [-1, 4, 5]])

    def fun(table, index):
        vectors = jax.nn.one_hot(index, 5)
        return vectors @ table, vectors.astype(int).reshape(6, 5).astype(float) @ table

    table = np.arange(15, dtype=np.float32).reshape(5, 3)
    made = entry(fun, (table, index), TARGETS[consumer])
    for found in runtimes.run(consumer, made).values():
        for e, a in zip(jax.jit(fun)(table, index), found, strict=True):
            np.testing.assert_array_equal(a, e)
