"""All passes together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes import pipeline
from lowering.targets import Mode
from tests.passes.programs import equation, primitives, traced

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def optimized(fun, *args, mode=Mode.GRAPH):
    jaxpr, functions = pipeline.whole_program(traced(fun, *args))
    return pipeline.optimized(jaxpr, mode, functions)


@pytest.mark.parametrize("mode", Mode)
def test_patterns_are_found_across_calls(mode):
    relu = jax.jit(jax.nn.relu)

    def fun(x):
        shifted = x - lax.stop_gradient(relu(x).max(-1, keepdims=True))
        exp = jax.jit(jnp.exp)(relu(x) - (x - shifted))
        return jax.nn.softmax(relu(x)), exp

    assert "softmax" in primitives(optimized(fun, X, mode=mode))


def test_dead_code_is_removed():
    assert primitives(optimized(lambda x: (jnp.sin(x), jnp.cos(x))[0], X)) == ["sin"]


def test_hoisted_equations_are_fused():
    def fun(x, ys):
        return lax.scan(lambda c, y: (c * jax.nn.softmax(x) + y, ()), x, ys)

    after = optimized(fun, X, np.zeros((100, 2, 3), np.float32))
    assert "softmax" in primitives(after)
    assert "exp" not in primitives(equation(after, "scan").params["jaxpr"])


def test_calls_are_inlined_when_executed_eagerly():
    @jax.jit
    def long(x):
        for _ in range(8):
            x = jnp.sin(x) + 1
        return x

    assert "jit" in primitives(optimized(lambda x: long(long(x)), X))
    assert "jit" not in primitives(optimized(lambda x: long(long(x)), X, mode=Mode.EAGER))


def test_a_jaxpr_is_optimized_once():
    jaxpr = traced(jnp.sin, X)
    first, second = (pipeline.optimized(jaxpr, Mode.GRAPH, frozenset()) for _ in range(2))
    assert first is second
