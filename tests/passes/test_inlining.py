"""Calls become the equations of what they call."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.passes.inlining import inline_calls, outlined
from tests.passes.programs import assert_same, primitives, traced

X = np.linspace(-1, 1, 4, dtype=np.float32)


@jax.jit
def inner(x):
    return jnp.sin(x) * 2


@jax.jit
def outer(x):
    return inner(inner(x)) + x


def test_nested_calls_are_inlined():
    before = traced(lambda x: outer(outer(x)), X)
    after = inline_calls(before, frozenset())
    assert primitives(after) == ["sin", "mul", "sin", "mul", "add"] * 2
    assert_same(before, after, X)


def test_each_copy_has_variables_of_its_own():
    after = inline_calls(traced(lambda x: outer(outer(x)), X), frozenset())
    made = [var for eqn in after.eqns for var in eqn.outvars]
    assert len(made) == len(set(made))


def test_custom_derivatives_and_remat_are_calls():
    def fun(x):
        return jax.nn.relu(jax.checkpoint(jnp.sin)(x))

    before = traced(fun, X)
    after = inline_calls(before, frozenset())
    assert primitives(after) == ["sin", "max"]
    assert_same(before, after, X)


def test_results_that_are_operands_or_constants():
    @jax.jit
    def fun(x, y):
        return y, x, jnp.float32(3), np.arange(4.0, dtype=np.float32)

    before = traced(lambda x, y: fun(y, x), X, X + 1)
    assert_same(before, inline_calls(before, frozenset()), X, X + 1)


def test_scopes_are_joined():
    @jax.jit
    def scoped(x):
        with jax.named_scope("inside"):
            return jnp.cos(x)

    def fun(x):
        with jax.named_scope("outside"):
            return scoped(x)

    (eqn,) = inline_calls(traced(fun, X), frozenset()).eqns
    assert str(eqn.source_info.name_stack) == "outside/inside"


def test_long_jaxprs_that_are_called_often_stay():
    @jax.jit
    def long(x):
        for _ in range(8):
            x = jnp.sin(x) + 1
        return x

    jaxpr = traced(lambda x: inner(long(inner(long(x)))), X)
    kept = outlined(jaxpr, lambda called: False)
    assert len(kept) == 1
    assert primitives(inline_calls(jaxpr, kept)) == ["jit", "sin", "mul", "jit", "sin", "mul"]


def test_bodies_of_loops_stay_as_they_are():
    before = traced(lambda x: lax.fori_loop(0, 3, lambda i, y: inner(y), x), X)
    after = inline_calls(before, frozenset())
    assert primitives(after) == primitives(before)
