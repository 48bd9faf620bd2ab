"""Scatters of which many updates go to one place, in runtimes: they take no turn of a loop each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lowering
from lowering.arrays import repetition
from lowering.export import runtimes
from lowering.export.flat import flat_entry
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


# Functions that are applied to a place as often as it is updated.
FUNCTIONS = {
    "idempotent": jnp.abs,
    "its own inverse": jnp.negative,
    "to a fixed point": lambda x: x * 0.5 + 1,
    "to infinity": lambda x: x * 2 + 1,
    "to NaN": lambda x: jnp.sqrt(x - 1),
    "on and on": lambda x: x + 1,
}


def _places(rng, count):
    """Places, of which nine in ten are the same, some occur a few times, and one never does."""
    places = rng.integers(-1, PLACES + 1, count)
    return np.where(rng.random(count) < 0.9, 7, np.where(places == 3, 4, places)).astype(np.int32)


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_functions_of_places(consumer):
    rng = np.random.default_rng(0)
    x, index = rng.normal(size=(PLACES, 2)).astype(np.float32), _places(rng, 16_000)

    def fun(x, index):
        to_drop = jnp.where(index < 0, PLACES, index)
        return [
            *(x.at[to_drop].apply(f, mode="drop") for f in FUNCTIONS.values()),
            x.at[index[:9], 1].apply(jnp.cos),
            (x * 9).astype(jnp.int32).at[index, 0].apply(lambda y: ~y * 3, mode="clip"),
        ]

    converted = lowering.convert(fun, target=consumer, with_gradient=False)
    entry = flat_entry(converted, (x, index))
    for results in runtimes.run(consumer, entry).values():
        for result, expected in zip(results, jax.jit(fun)(x, index), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_how_often_a_function_is_applied(name):
    """Only what never comes to an end is applied as often as there are updates."""
    applied = []

    def fun(x):
        jax.debug.callback(lambda: applied.append(name))
        return FUNCTIONS[name](x)

    counts = np.int32([0, 1, 5, 16, 33, 14_400])
    x = np.linspace(-2, 3, 6, dtype=np.float32)
    result = repetition.apply_to_each(x, counts, apply=fun)
    expected = [
        jax.lax.fori_loop(0, n, lambda _, y: FUNCTIONS[name](y), y)
        for n, y in zip(counts, x, strict=True)
    ]
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    jax.effects_barrier()
    assert len(applied) <= (15_000 if name == "on and on" else 200)
