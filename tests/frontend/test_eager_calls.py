"""Programs that are called eagerly again and again become functions of TensorFlow."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering.frontend import eager_calls
from lowering.ops import constants


@pytest.fixture
def made(monkeypatch):
    """The functions that are made for eager calls."""
    found = []
    make = eager_calls.EagerCalls._made

    def spied(self, *args):
        found.append(make(self, *args))
        return found[-1]

    monkeypatch.setattr(eager_calls.EagerCalls, "_made", spied)
    return found


def _network():
    rng = np.random.default_rng(0)
    w, v = (rng.normal(size=s).astype(np.float32) for s in ((64, 64), (64, 3)))
    return lambda x: jnp.tanh(x @ w) @ v + 1


@pytest.mark.parametrize("target", ["xla", "tf", "portable"])
def test_the_results_are_the_same(made, target):
    fun = _network()
    converted = lowering.convert(fun, target=target)
    for i in range(5):
        x = np.random.default_rng(i).normal(size=(4, 64)).astype(np.float32)
        np.testing.assert_allclose(converted(x), fun(x), rtol=2e-5, atol=1e-5)
    assert len(made) == 1 and made[0] is not None


def test_large_constants_are_no_copies(made):
    converted = lowering.convert(_network())
    x = np.ones((4, 64), np.float32)
    for _ in range(3):
        converted(x)
    (function,) = made
    nodes = function.graph.as_graph_def().node
    assert max(n.attr["value"].ByteSize() for n in nodes) < constants._BY_VALUE_BYTES
    assert any(x.shape == (64, 64) for x in function.graph.external_captures)


@pytest.mark.parametrize("calls_before", [0, 1, 2, 5])
def test_gradients_of_any_order(made, calls_before):
    converted = lowering.convert(lambda x: jnp.sum(jnp.sin(x) * x**2))
    x = tf.constant([0.5, 1.0, 2.0])
    for _ in range(calls_before):
        converted(x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = converted(x)
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    slope = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x**2))
    np.testing.assert_allclose(first, slope(x.numpy()), rtol=1e-5)
    expected = jax.grad(lambda x: slope(x).sum())(x.numpy())
    np.testing.assert_allclose(second, expected, rtol=1e-5)


def test_a_training_step_of_many_turns(made):
    def loss(w, x):
        return jnp.mean((jnp.tanh(x @ w) - 1) ** 2)

    converted = lowering.convert(loss)
    w = tf.Variable(np.full((3, 1), 0.1, np.float32))
    x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    ours = w.numpy()
    for _ in range(6):
        with tf.GradientTape() as tape:
            y = converted(w, x)
        w.assign_sub(0.1 * tape.gradient(y, w))
        ours = ours - 0.1 * jax.grad(loss)(ours, x)
    np.testing.assert_allclose(w, ours, rtol=1e-5, atol=1e-6)
    assert made


def test_forward_accumulators(made):
    converted = lowering.convert(jnp.sin)
    x, t = tf.constant([0.3, 0.4]), tf.constant([1.0, 2.0])
    for _ in range(4):
        with tf.autodiff.ForwardAccumulator(x, t) as accumulator:
            y = converted(x)
        np.testing.assert_allclose(accumulator.jvp(y), np.cos(x) * t, rtol=1e-6)


def test_sizes_that_are_symbolic_share_a_function(made):
    converted = lowering.convert(lambda x: x.sum(0) / x.shape[0], polymorphic_shapes="(b, _)")
    for b in (2, 3, 4, 5):
        x = np.arange(b * 3, dtype=np.float32).reshape(b, 3)
        np.testing.assert_allclose(converted(x), x.mean(0), rtol=1e-6)
    assert len(made) == 1
    with pytest.raises(lowering.errors.ShapeError):
        converted(np.zeros((2, 3, 4), np.float32))


def test_without_gradient_there_is_still_none(made):
    converted = lowering.convert(lambda x: x * 2, with_gradient=False)
    x = tf.constant([1.0])
    for _ in range(4):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        with pytest.raises(LookupError, match="with_gradient=False"):
            tape.gradient(y, x)
    assert made


def test_what_python_does_is_done_by_every_call(made):
    seen = []

    def fun(x):
        jax.debug.callback(seen.append, x)
        y = jax.pure_callback(lambda x: x + len(seen), x, x)
        return y, lowering.call_tf(lambda x: x + tf.cast(counter, x.dtype))(x)

    counter = tf.Variable(0)
    converted = lowering.convert(fun, with_gradient=False)
    for i in range(5):
        counter.assign(i)
        _, z = converted(np.float32(1))
        assert z == 1 + i
    assert len(seen) == 5 and not made


def test_keys_and_draws(made):
    def draw(key):
        return jax.random.normal(key, (3,))

    converted = lowering.convert(draw)
    for i in range(5):
        key = jax.random.key(i)
        np.testing.assert_allclose(converted(key), draw(key), rtol=2e-6)
    assert made


def test_loops_branches_and_dtypes(made):
    def fun(n, x):
        x = jax.lax.fori_loop(0, n, lambda i, x: x * 2, x)
        return jax.lax.cond(n > 2, lambda x: -x, lambda x: x, x), x.astype(jnp.bfloat16)

    converted = lowering.convert(fun)
    for n in range(6):
        for y, expected in zip(converted(n, np.float32(3)), fun(n, np.float32(3)), strict=True):
            assert y == expected and y.dtype.as_numpy_dtype == expected.dtype
    assert made


def test_who_looks_at_ops_sees_them(made):
    converted = lowering.convert(_network())
    x = np.ones((4, 64), np.float32)
    tf.debugging.enable_check_numerics()
    try:
        for _ in range(4):
            converted(x)
    finally:
        tf.debugging.disable_check_numerics()
    tf.config.run_functions_eagerly(True)
    try:
        for _ in range(4):
            converted(x)
    finally:
        tf.config.run_functions_eagerly(False)
    assert not made


def test_threads(made):
    fun = _network()
    converted = lowering.convert(fun)
    x = np.ones((4, 64), np.float32)
    failures = []

    def call():
        for _ in range(10):
            if not np.allclose(converted(x), fun(x), rtol=2e-5, atol=1e-5):
                failures.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
