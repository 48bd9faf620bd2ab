"""Transposes in and around loops, which TensorFlow's converter to TF Lite would move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from lowering import export
from lowering.export import tflite


def _repeat(body, x):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, body(c[1])), (0, x))[1]


def _turn(x):
    """An elementwise op that the converter moves past the transpose after it."""
    return jnp.cumsum(jnp.tanh(x).T, 0)


def _inside_and_after(x, y):
    return _repeat(_turn, x) + jnp.cumsum(y, 0).T


def _in_nested_loops(x, y):
    return _repeat(lambda c: _turn(_repeat(_turn, c)), x) + jnp.cumsum(y, 0).T


def _of_the_outside(x, y):
    z = jnp.cumsum(y, 0).T
    return _repeat(lambda c: jnp.cumsum(c, 0).T + z, x) * z


def _in_a_branch_of_a_loop(x, y):
    def step(c):
        return jax.lax.cond(c.sum() > 0, _turn, lambda c: _turn(c + y), _turn(c))

    return _repeat(step, x) + jnp.cumsum(y, 0).T


@pytest.mark.parametrize(
    "fun", [_inside_and_after, _in_nested_loops, _of_the_outside, _in_a_branch_of_a_loop]
)
def test_loops_with_transposes(fun):
    x, y = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    export.to_tflite(fun, (x, y))


def test_a_function_that_is_lowered_already(tmp_path):
    """What a loop does not change is computed in it, not before."""

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([4, 4], tf.float32, "x")])
    def fun(x):
        z = tf.transpose(tf.cumsum(x))
        _, y = tf.while_loop(
            lambda i, _: i < 3,
            lambda i, y: (i + 1, tf.cumsum(tf.transpose(tf.tanh(y))) * tf.tanh(z)),
            (0, x),
        )
        return {"y": y + z}

    tflite.write(fun.get_concrete_function(), tmp_path / "model.tflite")
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    runner = Interpreter(str(tmp_path / "model.tflite")).get_signature_runner()
    np.testing.assert_allclose(runner(x=x)["y"], fun(tf.constant(x))["y"], rtol=1e-6, atol=1e-6)


def test_transposes_without_a_loop_are_moved():
    """The converter removes transposes that undo each other, past the ops between them."""
    model = export.to_tflite(lambda x: jnp.tanh(x.T).T, (np.ones((2, 3), np.float32),))
    interpreter = Interpreter(model_content=model)
    assert [op["op_name"] for op in interpreter._get_ops_details()] == ["TANH"]
