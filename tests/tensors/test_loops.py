"""Loops carry and copy only what they need, and compute products ahead of their steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering.tensors import loops
from tests.helpers import op_counts, op_types
from tests.scans import X, cumulative, graph_of


def body_of(graph):
    functions = graph.as_graph_def().library.function
    (body,) = [f for f in functions if "while_body" in f.signature.name]
    return body


def test_eager_loop_is_traced_once(monkeypatch):
    traced, loop = [], loops.Scan.loop
    monkeypatch.setattr(loops.Scan, "loop", lambda *args: traced.append(1) or loop(*args))
    converted = lowering.convert(cumulative, target="tf")
    for step in range(2):
        converted(X + step)
    assert len(traced) == 1
    # The third call makes a function of the whole program.
    for step in range(3):
        converted(X + step)
    assert len(traced) == 2


def test_elements_are_copied_once():
    counts = op_counts(graph_of(cumulative, X))
    assert counts["StatelessWhile"] == 1
    assert counts["TensorListFromTensor"] == 1
    assert counts["TensorListGetItem"] == 1
    assert counts["TensorListSetItem"] == 1
    assert counts["TensorListStack"] == 1


def test_constants_are_not_carried():
    table = np.arange(1000, dtype=np.float32)

    def fun(x):
        return lax.scan(lambda c, y: (c + table[:6] * y, ()), x, jnp.arange(50.0))[0]

    graph = graph_of(fun, X)
    # The counters of TensorFlow and of the scan, the maximum number of steps, the elements, `c`.
    assert len(body_of(graph).signature.input_arg) == 5


def test_unchanged_values_are_not_carried():
    def fun(x):
        def body(carry):
            i, n, y = carry
            return i + 1, n, y * 2

        return lax.while_loop(lambda c: c[0] < c[1], body, (0, 7, x))

    graph = graph_of(fun, X)
    assert len(body_of(graph).signature.input_arg) == 4
    np.testing.assert_array_equal(lowering.convert(fun)(X)[2], X * 128)


def test_short_scan_is_no_loop():
    counts = op_counts(graph_of(lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x), X))
    assert not counts["StatelessWhile"]


def recurrent(w, v, xs):
    def step(h, x):
        h = jnp.tanh(x @ w + h @ v)
        return h, (h * 2, x.sum(-1))

    return lax.scan(step, jnp.zeros((xs.shape[1], 4)), xs), lax.scan(
        step, jnp.ones((xs.shape[1], 4)), xs, reverse=True
    )


RECURRENT = [
    np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((3, 4), (4, 4), (23, 2, 3))
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shapes", [None, [None, None, "(n, b, 3)"]])
def test_products_that_wait_for_nothing_are_one(shapes, compiled):
    converted = lowering.convert(recurrent, polymorphic_shapes=shapes, target="tf")
    function = tf.function(converted, autograph=False, jit_compile=compiled)
    expected, actual = recurrent(*RECURRENT), function(*RECURRENT)
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6), expected, actual
    )
    if shapes is None and not compiled:
        graph = graph_of(recurrent, *RECURRENT)
        assert op_types(graph).count("MatMul") == 2
        assert op_counts(graph)["MatMul"] == 4


@pytest.mark.parametrize(("rows", "ahead"), [(2048, 2), (2049, 0)])
def test_compiled_products_are_one_if_their_results_are_few(rows, ahead):
    xs = np.zeros((23, rows, 3), np.float32)
    graph = graph_of(recurrent, *RECURRENT[:2], xs, compiled=True)
    assert op_types(graph).count("MatMul") == ahead
    assert op_counts(graph)["MatMul"] == 4


@pytest.mark.parametrize("length", [24, 23])
def test_short_steps_share_an_iteration(length):
    def fun(x):
        return lax.scan(lambda c, y: (jnp.sin(c) + y, c * y), x[0], jnp.tile(x, 4)[:length])

    reads = op_counts(graph_of(fun, X))["TensorListGetItem"]
    assert reads == (8 if length == 24 else 1)
    assert op_counts(graph_of(fun, X, compiled=True))["TensorListGetItem"] == 1
    expected, actual = fun(X), lowering.convert(fun)(X)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(y, x, rtol=1e-5), expected, actual)


@pytest.mark.parametrize("compiled", [False, True])
def test_products_beside_keys(compiled):
    def fun(w, xs):
        def step(h, key_and_x):
            key, x = key_and_x
            h = jnp.tanh(h + jax.random.bernoulli(key, 0.5, (4,)) * (x @ w))
            return h, h.sum()

        keys = jax.random.split(jax.random.key(0), xs.shape[0])
        return lax.scan(step, jnp.zeros((2, 4)), (keys, xs))

    w, _, xs = RECURRENT
    function = tf.function(lowering.convert(fun), autograph=False, jit_compile=compiled)
    expected, actual = fun(w, xs), function(w, xs)
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6), expected, actual
    )
