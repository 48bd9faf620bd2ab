"""All passes together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering.export import listing
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


def test_names_are_unique():
    names = [each.name for each in (*pipeline.WHOLE_PROGRAM, *pipeline.PASSES)]
    assert len(names) == len(set(names))


PASSES_TO_SKIP = [
    each.name for each in (*pipeline.WHOLE_PROGRAM, *pipeline.PASSES) if not each.is_required
]


def _program(x):
    """What most passes change."""

    def step(carry, row):
        carry = jax.nn.softmax(carry + row @ W * jnp.sin(x[0]))
        return carry, jax.nn.relu6(carry)[jnp.argmax(row)]

    carry, rows = lax.scan(step, x[0], x)
    noise = jax.random.normal(jax.random.key(0), (2, 3)) + jnp.cos(x)
    half = jax.nn.gelu(x.astype(np.float16)).astype(np.float32)
    return carry, rows.mean(), noise - noise.mean(1, keepdims=True), half.T @ x, (x @ W).T


W = np.eye(3, dtype=np.float32) / 2


@pytest.mark.parametrize("target", ["tf", "tflite"])
@pytest.mark.parametrize("name", PASSES_TO_SKIP)
def test_results_are_the_same_without_a_pass(name, target):
    converted = lowering.convert(_program, target=target)
    with pipeline.without(name):
        actual = tf.function(converted, autograph=False)(X)
    for x, y in zip(actual, jax.jit(_program)(X), strict=True):
        np.testing.assert_allclose(x, y, rtol=0.01, atol=0.01)


def test_what_is_skipped_is_cached_apart():
    jaxpr, functions = pipeline.whole_program(traced(jax.nn.softmax, X))
    fused = pipeline.optimized(jaxpr, Mode.GRAPH, functions)
    with pipeline.without("fuse ops"):
        assert "softmax" not in primitives(pipeline.optimized(jaxpr, Mode.GRAPH, functions))
        with pipeline.without("inline calls"):
            assert pipeline.skipped() == {"fuse ops", "inline calls"}
        assert pipeline.skipped() == {"fuse ops"}
    assert pipeline.optimized(jaxpr, Mode.GRAPH, functions) is fused
    assert primitives(fused) == ["softmax"]


def test_a_converted_function_is_not_the_same_without_a_pass():
    converted = lowering.convert(lambda x: (jnp.cos(x), jnp.sin(x))[1], target="tf")

    def count():
        return len(listing.lines_of(lambda: graph_of(converted)))

    def graph_of(fun):
        return tf.function(fun, autograph=False).get_concrete_function(X)

    with pipeline.without("eliminate dead code"):
        assert count() == 2
    assert count() == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tidi", "no pass is called 'tidi'; the passes are fuse functions, replace references"),
        ("expand primitives", "'expand primitives' cannot be skipped: programs need it"),
    ],
)
def test_names_that_cannot_be_skipped(name, message):
    with pytest.raises(ValueError, match=message), pipeline.without("tidy", name):
        pass
    assert not pipeline.skipped()
