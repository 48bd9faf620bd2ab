"""A process may convert programs for ever: what is kept for one is freed with it.

LOWERING_LIVES is how many different programs are converted, 1000 by default: the first half fills
the caches of JAX and TensorFlow, which are bounded.
"""

import gc
import json
import os
import subprocess
import sys
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert
from lowering.ops.bounded import Bounded
from lowering.passes.caches import PerJaxpr
from tests.helpers import MODES, ROOT, in_mode
from tests.lives import COUNTED

PROGRAMS = int(os.environ.get("LOWERING_LIVES", 1000))

# What allocators do not give back, and what JAX keeps. A program has a constant of a megabyte, and
# the graphs of it and its gradient take 160 kilobytes.
BYTES_PER_PROGRAM = 50_000


def test_a_process_does_not_grow():
    command = [sys.executable, "-m", "tests.lives", str(PROGRAMS)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    half, whole = map(json.loads, output.splitlines())
    grown = {name: whole[name] - half[name] for name in half}
    assert grown["resident"] < BYTES_PER_PROGRAM * grown["programs"], grown
    assert all(grown[name] <= 0 for name in COUNTED), grown


def _bodies(table):
    """A function in a straight line, in a loop, in a function called twice, and in a reduction."""

    def plain(x):
        return jnp.tanh(x * table)

    @jax.jit
    def long(x):
        for _ in range(8):
            x = jnp.sin(x) + jnp.cos(x * table)
        return x

    return {
        "plain": plain,
        "scan": lambda x: lax.scan(lambda c, y: (c + plain(y), c), x[0], x)[1],
        "called twice": lambda x: long(long(x)),
        "cond": lambda x: lax.cond(x[0, 0] > 0, plain, jnp.sin, x),
    }


def _with_gradient(fun_tf):
    def fun(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun_tf(x)
        return y, tape.gradient(y, x)

    return fun


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("body", list(_bodies(None)))
def test_a_conversion_is_freed_with_its_constants(mode, body):
    table = np.linspace(0, 1, 1 << 12, dtype=np.float32)
    fun_jax = _bodies(table)[body]
    fun_tf = convert(fun_jax)

    in_mode(_with_gradient(fun_tf), mode)(tf.ones([2, table.size]))
    references = [weakref.ref(x) for x in (table, fun_jax, fun_tf)]
    del table, fun_jax, fun_tf
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


def test_a_graph_outlives_its_conversion():
    function = tf.function(convert(lambda x: jnp.sin(x) ** 2), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec([2], tf.float32))
    del function
    gc.collect()
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = concrete(x)
    np.testing.assert_allclose(tape.gradient(y, x), np.sin(2 * x.numpy()), rtol=1e-6)


def test_a_callback_is_not_kept_by_jax():
    def host(x):
        return x + 1

    reference = weakref.ref(host)
    fun_tf = convert(lambda x, host=host: jax.pure_callback(host, x, x))
    assert fun_tf(np.float32(1)) == 2
    del fun_tf, host
    gc.collect()
    assert reference() is None


def test_symbolic_shapes_are_traced_once():
    traced = []
    fun_tf = convert(lambda x: traced.append(x.shape) or x * 2, polymorphic_shapes="(b, _)")
    for size in (1, 2, 2, 3):
        fun_tf(tf.ones([size, 3]))
    assert len(traced) == 1


def test_only_so_many_traces_are_kept(monkeypatch):
    monkeypatch.setattr(sys.modules["lowering.convert"], "_TRACES", 2)
    traced = []
    fun_tf = convert(lambda x: traced.append(x.shape[0]) or x * 2)
    for size in (1, 2, 1, 3, 1, 2):
        fun_tf(np.ones(size, np.float32))
    assert traced == [1, 2, 3, 2]


def test_bounded():
    made = []
    bounded = Bounded(2)
    for key in "abacab":
        assert bounded.get(key, lambda key=key: made.append(key) or key.upper()) == key.upper()
    assert len(bounded) == 2
    assert made == ["a", "b", "c", "b"]


def test_what_is_remembered_of_a_jaxpr_is_freed_with_it():
    double = PerJaxpr(lambda jaxpr, n: [n] * 2)
    same = PerJaxpr(lambda jaxpr: jaxpr)
    jaxpr = jax.make_jaxpr(lambda x: x + 1)(1.0)
    assert double(jaxpr, 1) is double(jaxpr, 1)
    assert double(jaxpr, 2) == [2, 2]
    assert same(jaxpr) is same(jaxpr) is jaxpr
    reference = weakref.ref(jaxpr)
    del jaxpr
    gc.collect()
    assert reference() is None
