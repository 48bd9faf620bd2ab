"""Equinox: models that are pytrees, and the primitives that its transformations leave."""

import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check
from tests.helpers import ROOT

eqx = pytest.importorskip("equinox")
eqxi = pytest.importorskip("equinox.internal")

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


class Network(eqx.Module):
    conv: eqx.nn.Conv2d
    norm: eqx.nn.GroupNorm
    pool: eqx.nn.AdaptiveAvgPool2d
    head: eqx.nn.MLP

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.conv = eqx.nn.Conv2d(3, 8, 3, padding=1, key=first)
        self.norm = eqx.nn.GroupNorm(4, 8)
        self.pool = eqx.nn.AdaptiveAvgPool2d((2, 2))
        self.head = eqx.nn.MLP(32, 5, 16, 2, key=second)

    def __call__(self, image):
        return self.head(self.pool(jax.nn.relu(self.norm(self.conv(image)))).reshape(-1))


def test_a_network_for_images():
    params, static = eqx.partition(Network(jax.random.key(0)), eqx.is_array)

    @eqx.filter_jit
    def apply(params, images):
        return jax.vmap(eqx.combine(params, static))(images)

    check(apply, params, np.random.default_rng(1).normal(size=(2, 3, 8, 8)).astype(np.float32))


def test_a_recurrent_network():
    class Model(eqx.Module):
        cell: eqx.nn.GRUCell
        attention: eqx.nn.MultiheadAttention

        def __call__(self, xs):
            state = jnp.zeros(self.cell.hidden_size)
            _, states = jax.lax.scan(lambda h, x: (self.cell(x, h),) * 2, state, xs)
            return self.attention(states, states, states)

    first, second = jax.random.split(jax.random.key(0))
    model = Model(eqx.nn.GRUCell(3, 4, key=first), eqx.nn.MultiheadAttention(2, 4, key=second))
    params, static = eqx.partition(model, eqx.is_array)
    check(lambda params, xs: eqx.combine(params, static)(xs), params, X)


@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_loops(kind):
    def loop(x):
        def body(carry):
            step, y = carry
            return step + 1, y.at[step].set(jnp.sin(y[step - 1] + y[step]))

        init = (jnp.array(1), x)
        count = None if kind == "lax" else 8
        return eqxi.while_loop(lambda c: c[0] < 4, body, init, max_steps=count, kind=kind)[1]

    check(jax.vmap(loop), np.stack([X, 2 * X]), differentiable=kind != "lax")


def test_checks_of_values():
    def checked(x):
        x = eqx.error_if(x, x > 100, "too large")
        x = eqxi.nondifferentiable_backward(x.at[0].add(1)) if x.shape == () else x
        return eqxi.nonbatchable(jnp.sum(eqxi.unvmap_max(x.astype(int)))) + jnp.exp(x)

    check(checked, X)
    check(jax.vmap(lambda x: eqx.error_if(x, x[0] > 100, "too large") * 2), X)


def test_an_error_is_raised_in_a_graph():
    """By default a check calls back into Python, if it fails."""
    program = """
        import equinox as eqx, numpy as np, tensorflow as tf
        import lowering

        def checked(x):
            return eqx.error_if(x, x < 0, "it is negative") * 2

        function = tf.function(lowering.convert(checked), autograph=False)
        print(function(np.float32([1, 2])).numpy())
        try:
            function(np.float32([1, -2]))
        except tf.errors.OpError as error:
            print("raised", "it is negative" in str(error))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "EQX_ON_ERROR": "raise"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n")[:2] == ["[2. 4.]", "raised True"]
