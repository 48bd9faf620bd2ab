"""What is asked of every program of a framework: that its conversion is JAX's in every way."""

import tempfile
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tensorflow as tf

import lowering
from tests.helpers import MODES, in_mode


def check(
    fun: Callable[..., Any],
    *args: Any,
    differentiable: bool = True,
    modes: tuple[str, ...] = MODES,
    tolerance: float = 1e-4,
) -> None:
    """Converts a program, and compares it with JAX: in modes, differentiated, saved and loaded.

    Args:
      fun: a JAX function of pytrees.
      *args: its arguments, of which the first is differentiated, where it is floating.
      differentiable: whether JAX can differentiate it in reverse.
      modes: how TensorFlow executes it.
      tolerance: how much a result may differ, relative to the largest number in it.
    """
    args = jax.tree.map(np.asarray, args)
    expected = jax.jit(fun)(*args)
    converted = lowering.convert(fun)
    leaves, tree = jax.tree.flatten(args)

    def flat(*leaves):  # TensorFlow's functions do not take the containers of all frameworks.
        return jax.tree.leaves(converted(*jax.tree.unflatten(tree, leaves)))

    for mode in modes:
        actual = in_mode(flat, mode)(*map(tf.constant, leaves))
        assert_close(list(actual), expected, tolerance, mode)
    if differentiable:
        check_gradient(fun, args, tolerance)
    check_saved(converted, args, expected, tolerance)


def check_gradient(fun: Callable[..., Any], args: Any, tolerance: float) -> None:
    """Compares the gradients of the sum of all squared results."""
    leaves, tree = jax.tree.flatten(args[0])
    places = [i for i, x in enumerate(leaves) if np.issubdtype(x.dtype, np.floating)]

    def with_floating(floating):
        changed = dict(zip(places, floating, strict=True))
        merged = [changed.get(i, x) for i, x in enumerate(leaves)]
        return jax.tree.unflatten(tree, merged)

    def loss(floating, others):
        results = jax.tree.leaves(fun(with_floating(floating), *others))
        return sum((y**2).sum() for y in results if np.issubdtype(y.dtype, np.floating))

    expected = jax.jit(jax.grad(loss))([leaves[i] for i in places], args[1:])
    converted = lowering.convert(fun)

    @tf.function(autograph=False)
    def gradient(*floating):
        with tf.GradientTape() as tape:
            tape.watch(floating)
            results = jax.tree.leaves(converted(with_floating(floating), *args[1:]))
            total = tf.add_n([tf.reduce_sum(y**2) for y in results if y.dtype.is_floating])
        return tape.gradient(total, floating, unconnected_gradients="zero")

    actual = gradient(*(tf.constant(leaves[i]) for i in places))
    assert_close(list(actual), expected, 10 * tolerance, "gradient")


def check_saved(converted: Callable[..., Any], args: Any, expected: Any, tolerance: float) -> None:
    """Saves the conversion with its first argument as variables, loads it and compares results."""
    module = tf.Module()
    leaves, tree = jax.tree.flatten(args[0])
    module.leaves = [tf.Variable(x) for x in leaves]
    others, others_tree = jax.tree.flatten(args[1:])

    @tf.function(autograph=False, input_signature=[tf.TensorSpec(x.shape, x.dtype) for x in others])
    def run(*others):
        first = jax.tree.unflatten(tree, list(module.leaves))
        return jax.tree.leaves(converted(first, *jax.tree.unflatten(others_tree, others)))

    module.run = run
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(module, directory)
        loaded = tf.saved_model.load(directory)
        actual = loaded.run(*map(tf.constant, others))
    assert_close(list(actual), jax.tree.leaves(expected), tolerance, "saved")


def assert_close(actual: Any, expected: Any, tolerance: float, what: str) -> None:
    """Compares trees of arrays: floating ones up to a tolerance, others exactly."""
    actual, expected = map(np.asarray, actual), [_words(x) for x in jax.tree.leaves(expected)]
    # What is far smaller than other results may be zero up to rounding.
    least = 1e-3 * max(map(_largest, expected), default=0)
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype and a.shape == e.shape
        if np.issubdtype(e.dtype, np.floating):
            atol = tolerance * max(_largest(e), least)
            np.testing.assert_allclose(a, e, rtol=0, atol=atol, err_msg=what)
        else:
            np.testing.assert_array_equal(a, e, err_msg=what)


def _largest(x: np.ndarray) -> float:
    """The largest absolute value of floating numbers."""
    if not np.issubdtype(x.dtype, np.floating):
        return 0
    return float(np.abs(x[np.isfinite(x)]).max(initial=0))


def _words(x: Any) -> np.ndarray:
    is_key = jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(x) if is_key else x)
