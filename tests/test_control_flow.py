"""How loops, branches and calls are lowered: what is traced, carried, shared and differentiated."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering.core import outlining

X = np.linspace(-1, 1, 6, dtype=np.float32)


def graph_of(fun, *args, compiled=False, **options):
    converted = lowering.convert(fun, target="tf", **options)
    function = tf.function(converted, autograph=False, jit_compile=compiled)
    return function.get_concrete_function(*map(tf.constant, args)).graph.as_graph_def()


def op_counts(graph_def) -> collections.Counter:
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    return collections.Counter(node.op for node in nodes)


def body_of(graph_def):
    (body,) = [f for f in graph_def.library.function if "while_body" in f.signature.name]
    return body


def cumulative(x):
    # 47 elements: a prime, so that each has a step of its own.
    return lax.scan(lambda c, y: (jnp.sin(c) + y, c * y), x[0], jnp.tile(x, 8)[1:])


def test_eager_loop_is_traced_once():
    converted = lowering.convert(cumulative, target="tf")
    before = len(outlining.EAGER)
    converted(X)
    assert len(outlining.EAGER) == before + 1
    converted(X + 1)
    converted(X + 2)
    assert len(outlining.EAGER) == before + 1


def test_eager_loop_with_symbolic_dimensions():
    def fun(x):
        return lax.fori_loop(0, 3, lambda i, y: y + jnp.ones(x.shape[0], x.dtype), x)

    converted = lowering.convert(fun, target="tf", polymorphic_shapes=["(b,)"])
    for size in (0, 2, 5):
        np.testing.assert_array_equal(converted(np.zeros(size, np.float32)), np.full(size, 3.0))


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

    graph_def = graph_of(fun, X)
    # The counters of TensorFlow and of the scan, the maximum number of steps, the elements, `c`.
    assert len(body_of(graph_def).signature.input_arg) == 5


def test_unchanged_values_are_not_carried():
    def fun(x):
        def body(carry):
            i, n, y = carry
            return i + 1, n, y * 2

        return lax.while_loop(lambda c: c[0] < c[1], body, (0, 7, x))

    graph_def = graph_of(fun, X)
    assert len(body_of(graph_def).signature.input_arg) == 4
    np.testing.assert_array_equal(lowering.convert(fun)(X)[2], X * 128)


def test_short_scan_is_no_loop():
    counts = op_counts(graph_of(lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x), X))
    assert not counts["StatelessWhile"]


def test_known_index_takes_one_branch():
    counts = op_counts(graph_of(lambda x: lax.switch(1, [jnp.sin, jnp.cos], x), X))
    assert counts["Cos"] == 1
    assert not counts["Sin"] and not counts["StatelessIf"] and not counts["StatelessCase"]


def test_body_called_often_is_a_function():
    @jax.jit
    def layer(x):
        for _ in range(10):
            x = jnp.sin(x) + 1
        return x

    counts = op_counts(graph_of(lambda x: layer(layer(layer(x))), X))
    assert counts["Sin"] == 10


def test_scan_over_a_symbolic_length():
    def fun(x):
        return lax.scan(lambda c, y: (c + y, c * y), jnp.zeros((), x.dtype), x)

    for compiled in (False, True):
        converted = tf.function(
            lowering.convert(fun, target="tf", polymorphic_shapes=["(t,)"]),
            autograph=False,
            jit_compile=compiled,
            input_signature=[tf.TensorSpec((None,), tf.float32)],
        )
        for size in (0, 1, 6):
            for actual, expected in zip(converted(X[:size]), fun(X[:size]), strict=True):
                np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_gradients(mode):
    def fun(x):
        _, ys = cumulative(x)
        y = lax.cond(ys[0] > 0, jnp.sin, jnp.cos, ys.sum())
        return y + lax.fori_loop(0, 3, lambda i, z: z * jnp.cos(z), x).sum()

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        return tape.gradient(y, x)

    converted = lowering.convert(fun, target="tf")
    if mode != "eager":
        gradient = tf.function(gradient, autograph=False, jit_compile=mode == "compiled")
    np.testing.assert_allclose(gradient(tf.constant(X)), jax.grad(fun)(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_custom_derivatives_are_respected(mode):
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, ()), lambda _, g: (jnp.clip(g, -1, 1),))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(lowering.convert(lambda x: clipped(x) * 5, target="tf")(x))
        return tape.gradient(y, x)

    if mode != "eager":
        gradient = tf.function(gradient, autograph=False, jit_compile=mode == "compiled")
    np.testing.assert_array_equal(gradient(tf.constant(X)), np.ones_like(X))


def test_saved_loop_runs(tmp_path):
    module = tf.Module()
    module.run = tf.function(
        lowering.convert(cumulative, target="tf", with_gradient=False),
        autograph=False,
        input_signature=[tf.TensorSpec((6,), tf.float32)],
    )
    tf.saved_model.save(module, tmp_path)
    restored = tf.saved_model.load(tmp_path)
    for actual, expected in zip(restored.run(X), cumulative(X), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


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
        graph_def = graph_of(recurrent, *RECURRENT)
        assert collections.Counter(n.op for n in graph_def.node)["MatMul"] == 2
        assert op_counts(graph_def)["MatMul"] == 4


@pytest.mark.parametrize(("rows", "ahead"), [(2048, 2), (2049, 0)])
def test_compiled_products_are_one_if_their_results_are_few(rows, ahead):
    xs = np.zeros((23, rows, 3), np.float32)
    graph_def = graph_of(recurrent, *RECURRENT[:2], xs, compiled=True)
    assert collections.Counter(n.op for n in graph_def.node)["MatMul"] == ahead
    assert op_counts(graph_def)["MatMul"] == 4


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
