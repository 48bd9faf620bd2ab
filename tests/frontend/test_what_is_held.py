"""What a function finds without being given it: arrays that change, containers, other functions."""

import collections
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert
from tests.helpers import assert_same

X = np.arange(1, 4, dtype=np.float32)


class Held:
    """Arrays that a user writes to after a function has been traced."""

    def __init__(self):
        self.vector = np.full(3, 2, np.float32)
        self.scalar = np.array(2, np.float32)
        self.large = np.full((300, 3), 2, np.float32)
        self.integers = np.array([2, 2])
        self.view = self.large[::2]
        self.read_only = self.view[:]
        self.read_only.flags.writeable = False
        self.owned_by_jax = jax.jit(lambda y: y * self.vector)

    def change(self):
        for array in (self.vector, self.scalar, self.large):
            array[...] = 7
        self.integers[...] = 0

    def everywhere(self, x):
        """A function that holds each of them, in all kinds of jaxprs; parts of it are folded."""
        body = lambda y: y * self.scalar + jnp.sin(self.vector)  # noqa: E731
        return {
            "folded": jnp.sin(self.vector) * self.scalar,
            "product": x * self.vector,
            "scalar": x + self.scalar,
            "large": (x * self.large).sum(0),
            "views": (self.view + self.read_only).sum(0) * x,
            "index": x[self.integers],
            "jit": self.owned_by_jax(x),
            "scan": jax.lax.scan(lambda c, _: (body(c), self.vector), x, None, 3),
            "cond": jax.lax.cond(x[0] > 0, body, lambda y: y, x),
            "while": jax.lax.while_loop(lambda c: c[0] < self.scalar * 9, body, x),
            "returned": (self.vector, self.scalar),
        }


@pytest.mark.parametrize("target", ["tf", "xla", "portable"])
def test_arrays_that_change(target):
    held = Held()
    expected = jax.tree.map(np.array, held.everywhere(X))
    fun_tf = convert(held.everywhere, target=target)
    fun_tf(X)  # Some of the constants are made here.
    held.change()
    close = functools.partial(np.testing.assert_allclose, rtol=1e-6)
    for run in (fun_tf, tf.function(fun_tf, autograph=False)):
        jax.tree.map(close, jax.tree.map(np.asarray, run(X)), expected)
    if target == "tf":  # A call with another shape is another trace, as it is in `jax.jit`.
        fun_tf = convert(lambda x: x * held.scalar)
        assert_same(fun_tf(X), X * 7)
        held.scalar[...] = 8
        assert_same((fun_tf(X), fun_tf(X[:2])), (X * 7, X[:2] * 8))


@pytest.mark.parametrize("shapes", [None, ["b"]], ids=["static", "symbolic"])
def test_gradients_of_arrays_that_change(shapes):
    held, x = Held(), tf.constant(X)
    fun = lambda x: jnp.sum(jnp.sin(x * held.scalar) * x.shape[0])  # noqa: E731
    value, first = jax.value_and_grad(fun)(X)
    second = jax.grad(lambda x: jax.grad(fun)(x).sum())(X)
    fun_tf = convert(fun, polymorphic_shapes=shapes)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun_tf(x)
        held.change()
        gradient = tape.gradient(y, x)
        held.scalar[...] = 11
    actual = (y, gradient, outer.gradient(gradient, x))
    for one, other in zip(actual, (value, first, second), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def _cyclic():
    """Containers that contain themselves, each with the number 2 in it."""
    items = [2.0]
    items.append(items)
    named = {"two": 2.0}
    named["self"] = (named, [named])
    ordered = collections.OrderedDict(two=2.0)
    ordered["self"] = ordered
    return items, named, ordered


CYCLIC = _cyclic()


def test_containers_that_contain_themselves():
    items, named, ordered = _cyclic()
    module = tf.Module()
    module.value = [3.0]
    items.append(module.value)

    def fun(x, given=ordered):
        tree = jax.tree.map(lambda y: y * x, items[2])
        return x * items[1][0] * named["self"][1][0]["two"] * given["self"]["two"], tree

    for _ in range(2):
        assert_same(convert(fun)(X), (X * 8, [X * 3]))
    assert_same(convert(lambda x: x * CYCLIC[0][1][0])(X), X * 2)
    assert_same(tf.function(convert(functools.partial(fun)), autograph=False)(X)[0], X * 8)


def test_large_containers():
    number = 300_000
    large = list(range(number)), dict.fromkeys(range(number), (1, 2.0)), {"a": [()] * number}
    many = [object() for _ in range(number)], [[i] for i in range(number)]
    start = time.process_time()
    assert_same(convert(lambda x: x + large[0][2] + large[1][5][1] + many[1][1][0])(X), X + 5)
    assert time.process_time() - start < 2


def _nested(count, wrap):
    fun = lambda x: x  # noqa: E731
    for _ in range(count):
        fun = wrap(fun)
    return fun


@pytest.mark.parametrize(
    "fun",
    [
        _nested(100, lambda inner: jax.jit(lambda x: inner(x) + 1)),
        _nested(400, lambda inner: lambda x: inner(x) + 1),
        _nested(400, lambda inner: functools.partial(lambda inner, x: inner(x) + 1, inner)),
    ],
    ids=["jit", "closures", "partial"],
)
def test_deep_nesting(fun):
    x, expected = tf.constant(X), fun(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = convert(fun)(x)
    assert_same(y, expected)
    if not hasattr(fun, "lower"):  # JAX differentiates fewer nested calls than it runs.
        assert_same(tape.gradient(y, x), np.ones_like(X))
    assert_same(tf.function(convert(fun), autograph=False)(X), expected)


def test_a_long_chain_that_ends_in_a_module():
    module = tf.Module()
    module.value = {"a": [2.0]}
    fun = lambda x: jax.tree.map(lambda y: y * x, module.value)  # noqa: E731
    for _ in range(300):
        fun = (lambda inner: lambda x: inner(x))(fun)
    assert_same(convert(fun)(X), {"a": [X * 2]})
