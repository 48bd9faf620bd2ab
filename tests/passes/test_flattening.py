"""Programs that draw random bits become programs on vectors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering.passes.flattening import flatten, flatten_calls
from lowering.passes.legalize.keys import split_keys
from lowering.targets import TF
from tests.passes.programs import primitives, traced

KEY = jax.random.key(0)


def on_key_data(fun):
    return split_keys(traced(fun, KEY), TF)


def flattened(fun):
    return flatten(on_key_data(fun))


def test_shapes_share_a_program():
    programs = [flattened(lambda k, s=s: jax.random.normal(k, s)) for s in ((3,), (2, 5), (4, 1))]
    assert len({program.key for program in programs}) == 1
    assert [program.shape for program in programs] == [(3,), (2, 5), (4, 1)]


def test_small_and_large_programs_are_different():
    small, large = (flattened(lambda k, n=n: jax.random.bits(k, (n,))) for n in (4095, 4096))
    assert small.key != large.key


def test_distributions_are_different_programs():
    keys = [flattened(lambda k, f=f: f(k, (3,))).key for f in (jax.random.normal, jax.random.bits)]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    "fun",
    [
        lambda k: jnp.zeros((3, 4)),
        lambda k: jax.random.normal(k, (3, 4)).T,
        lambda k: jax.random.normal(k, (3, 4)).sum(0),
        lambda k: jax.random.normal(k, ()),
        lambda k: (jax.random.bits(k, (3,)), jax.random.bits(k, (4,))),
        lambda k: jax.random.bits(k, (2,)) + jax.random.key_data(k),
    ],
)
def test_programs_that_are_not_elementwise(fun):
    assert flattened(fun) is None


def test_calls_are_replaced():
    jaxpr = on_key_data(lambda k: jax.random.normal(k, (3, 4)).T)
    assert "flat_call" in primitives(flatten_calls(jaxpr))


def test_arrays_beside_the_key_stay_arrays():
    chances = jnp.float32([[0, 1, 0.5], [1, 0.25, 0]])
    assert flatten(split_keys(traced(jax.random.bernoulli, KEY, chances), TF)) is None

    def drawn(chances):
        return jax.random.bernoulli(KEY, chances)

    in_graph = tf.function(lowering.convert(drawn, target="tf"), autograph=False)
    np.testing.assert_array_equal(in_graph(chances), drawn(chances))
