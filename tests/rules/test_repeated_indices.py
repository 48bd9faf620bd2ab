"""Scatters of which many updates go to one place, in runtimes: they take no turn of a loop each."""

import jax
import numpy as np
import pytest

import lowering
from lowering.export import runtimes
from lowering.export.entry import flat_entry
from lowering.targets import CONSUMERS

COUNT, PLACES = 4000, 100


def _scatters(x, rows, index, outside, updates, of_rows):
    return [
        x.at[index].set(updates),
        x.at[index].max(updates),
        x.at[outside].set(updates, mode="drop"),
        rows.at[index].set(of_rows),
    ]


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_repeated_indices(consumer):
    rng = np.random.default_rng(0)
    x, updates = (rng.normal(size=n).astype(np.float32) for n in (PLACES, COUNT))
    rows, of_rows = (rng.normal(size=(n, 2)).astype(np.float32) for n in (PLACES, COUNT))
    places = rng.integers(0, PLACES, COUNT)
    index = np.where(rng.random(COUNT) < 0.9, PLACES - 1, places).astype(np.int32)
    outside = rng.integers(-9, PLACES + 9, COUNT).astype(np.int32)
    args = (x, rows, index, outside, updates, of_rows)
    converted = lowering.convert(_scatters, target=consumer, with_gradient=False)
    entry = flat_entry(converted, args)
    assert not any("While" in op.type for op in entry.concrete.graph.get_operations())
    for results in runtimes.run(consumer, entry).values():
        for result, expected in zip(results, jax.jit(_scatters)(*args), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5)
