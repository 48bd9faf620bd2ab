"""Choices of the first condition that holds are chains, and what is short is no function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering.passes import pipeline
from lowering.targets import PORTABLE, TF, Mode
from tests.passes.meanings import assert_means
from tests.passes.programs import primitives, traced

X = np.array([[-2, -1, -0.0], [0.3, 1, np.inf]], np.float32)


def lowered(fun, *args, target=PORTABLE):
    jaxpr, functions = pipeline.whole_program(traced(fun, *args), target)
    return pipeline.optimized(jaxpr, Mode.GRAPH, functions, target)


SELECTS = {
    "two": lambda x: jnp.select([x > 1, x > 0], [x, 2 * x], -1.0),
    "three that overlap": lambda x: jnp.select([x > -2, x > 0, x < 9], [x, 2 * x, 3 * x], 7.0),
    "one": lambda x: jnp.select([x > 0], [x]),
    "of a row": lambda x: jnp.select([x[0] > 0, x > 0], [x, -x], 3.0),
    "integers": lambda x: jnp.select([x > 1, x > 0], [1, 2], 3),
}


@pytest.mark.parametrize("target", [PORTABLE, TF], ids=lambda target: target.name)
@pytest.mark.parametrize("case", SELECTS)
def test_select_has_no_index(case, target):
    jaxpr = lowered(SELECTS[case], X, target=target)
    assert not {"argmax", "stack"} & set(primitives(jaxpr))
    assert_means(jaxpr, SELECTS[case], X)


def test_an_index_that_others_need_stays():
    def fun(x):
        which = jnp.argmax(jnp.stack([jnp.zeros_like(x, bool), x > 1, x > 0]), 0)
        return jax.lax.select_n(which, x, 2 * x, 3 * x), which

    jaxpr = lowered(fun, X)
    assert "argmax" in primitives(jaxpr)
    assert_means(jaxpr, fun, X)


def test_a_first_condition_that_may_hold():
    def fun(x):
        which = jnp.argmax(jnp.stack([x > 0.5, x > 0, x < 0]), 0)
        return jax.lax.select_n(which, x, 2 * x, 3 * x)

    assert_means(lowered(fun, X), fun, X)


def test_what_becomes_one_op_is_no_function():
    def fun(x):
        return jax.nn.log_sigmoid(x) * jax.nn.log_sigmoid(2 * x)

    assert "softplus" in primitives(lowered(fun, X))
    assert "jit" not in primitives(lowered(fun, X))
    assert_means(lowered(fun, X), fun, X)


def test_negative_factors():
    for fun in (lambda x: -x * -jnp.sin(x), lambda x: 1 - x * -jnp.sin(x)):
        jaxpr = lowered(fun, X)
        assert "neg" not in primitives(jaxpr)
        assert_means(jaxpr, fun, X)


def test_zeros_that_are_scaled():
    def fun(x):
        return x + 0.9 * jnp.square(jnp.zeros_like(x))

    assert not primitives(lowered(fun, X))


def test_a_row_that_is_known():
    def fun(x):
        return jnp.take(x, 1, axis=0) + jnp.take(x, -1, axis=0)

    assert "gather" not in primitives(lowered(fun, X))
    assert_means(lowered(fun, X), fun, X)
