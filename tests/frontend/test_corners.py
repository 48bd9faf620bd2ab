"""Functions that have no arguments, no results, or the same ones twice."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert
from tests.helpers import MODES, in_mode

Point = collections.namedtuple("Point", ["x", "y"])
X = np.float32([1, 2])

# A function, its arguments and its keyword arguments.
CASES = {
    "no result": (lambda x: None, (X,), {}),
    "an empty dictionary": (lambda x: {}, (X,), {}),
    "nothing at all": (lambda: (), (), {}),
    "empty containers": (lambda x: {"a": [], "b": (None, {})}, (X,), {}),
    "a number": (lambda: 3, (), {}),
    "a constant": (lambda: jnp.arange(3.0), (), {}),
    "keyword arguments": (lambda *, a, b=2.0: a * b, (), {"a": X}),
    "any keyword arguments": (lambda **kwargs: kwargs, (), {"a": X, "b": X}),
    "any arguments": (lambda *args: sum(args), (X, X), {}),
    "an unused argument": (lambda x, y: x * 2, (X, X), {}),
    "unused arguments": (lambda x, y: 1.5, (X, X), {}),
    "an argument": (lambda x: x, (X,), {}),
    "arguments exchanged": (lambda x, y: (y, x), (X, 2 * X), {}),
    "the same twice": (lambda x: (x, x, [x * 2] * 2), (X,), {}),
    "values of Python": (lambda x: (1, 2.0, True, None, 1j, x), (X,), {}),
    "values of NumPy": (lambda x: (np.arange(3), np.float32(2)), (X,), {}),
    "an empty argument": (lambda x, empty: x + 1, (X, {}), {}),
    "None": (lambda x, nothing=None: x + 1, (X, None), {}),
    "a named tuple": (lambda p: Point(p.y, p.x), (Point(X, 2 * X),), {}),
    "an ordered dictionary": (
        lambda d: collections.OrderedDict(b=d["a"], a=d["b"]),
        (collections.OrderedDict(b=X, a=2 * X),),
        {},
    ),
    "integers": (lambda i: i, (np.int32([1]),), {}),
    "an empty array": (lambda x: x[:0], (X,), {}),
    "the sum of an empty array": (lambda x: x.sum(), (np.zeros((0, 3), np.float32),), {}),
    "a derivative of integers": (
        lambda i: jax.grad(lambda i: i.sum() * 2.0, allow_int=True)(i),
        (np.int32([1, 2]),),
        {},
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    fun, args, kwargs = request.param
    return fun, *jax.tree.map(tf.constant, (args, kwargs)), jax.jit(fun)(*args, **kwargs)


def assert_same(actual, expected):
    def held(x):
        is_float0 = getattr(x, "dtype", None) == jax.dtypes.float0
        return np.zeros(x.shape, bool) if is_float0 else np.asarray(x)

    leaves = [x.numpy() for x in tf.nest.flatten(actual) if x is not None]
    expected = [held(x) for x in tf.nest.flatten(expected) if x is not None]
    assert [x.dtype for x in leaves] == [x.dtype for x in expected]
    for a, e in zip(leaves, expected, strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("with_gradient", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_modes(case, mode, with_gradient):
    fun, args, kwargs, expected = case
    actual = in_mode(convert(fun, with_gradient=with_gradient), mode)(*args, **kwargs)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    assert_same(actual, expected)


def test_gradient(case):
    """TensorFlow may ask for any gradient; there may be none."""
    fun, args, kwargs, _ = case
    fun_tf = convert(fun)
    inputs = tf.nest.flatten((args, kwargs))
    with tf.GradientTape() as tape:
        tape.watch([x for x in inputs if x is not None and x.dtype.is_floating])
        results = [y for y in tf.nest.flatten(fun_tf(*args, **kwargs)) if y is not None]
        sums = [tf.reduce_sum(y) for y in results if y.dtype == tf.float32]
        total = sum(sums, tf.constant(0.0))
    watched = [x for x in inputs if x is not None and x.dtype.is_floating]
    for x, gradient in zip(watched, tape.gradient(total, watched), strict=True):
        assert gradient is None or gradient.shape == x.shape


def test_saved_and_loaded(case, tmp_path):
    fun, args, kwargs, expected = case
    module = tf.Module()
    module.fun = tf.function(convert(fun), autograph=False)
    specs = jax.tree.map(lambda x: tf.TensorSpec(x.shape, x.dtype), (args, kwargs))
    module.fun.get_concrete_function(*specs[0], **specs[1])
    tf.saved_model.save(module, tmp_path)
    assert_same(tf.saved_model.load(tmp_path).fun(*args, **kwargs), expected)
