"""Cells that fail are reduced to small programs, and scripts show how they fail."""

import concurrent.futures
import re

import jax
import jax.numpy as jnp
import numpy as np
import pebble
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from harnesses import reproducer
from harnesses.cell import Cell, Outcome, Verdict, trial_of
from harnesses.compare import close
from harnesses.harness import Harness, all_harnesses
from harnesses.reduction import ReductionError, reduce, smallest
from lowering import registry
from tools import bisect


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def wrong_sine(monkeypatch):
    """The rule of sin gives zero beyond 3."""

    def lower(ctx, x, **params):
        return tf.where(x > 3, tf.zeros_like(x), tf.raw_ops.Sin(x=x))

    monkeypatch.setitem(registry._RULES, ("sin", "tf"), [registry.Rule(lower)])


@pytest.fixture
def refused_sine(monkeypatch):
    """The rule of sin refuses what has a dimension of more than 2."""

    def lower(ctx, x, **params):
        if max(x.shape) > 2:
            ctx.unsupported("it is too large")
        return tf.raw_ops.Sin(x=x)

    monkeypatch.setitem(registry._RULES, ("sin", "tf"), [registry.Rule(lower)])


def script_of(reduced) -> str:
    text = reproducer.script(reduced.cell, reduced.trial, "What fails.")
    roots = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert roots <= {"jax", "numpy", "tensorflow", "lowering"}
    return text


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1, max_size=4))
    )
)
@settings(deadline=None)
def test_smallest_subset_of_what_fails_together(sizes):
    count, guilty = sizes
    tried = []

    def fails(kept):
        tried.append(kept)
        return guilty <= set(kept)

    assert smallest(range(count), fails) == sorted(guilty)
    assert all(tried)


def test_a_difference_of_the_project_itself():
    """XLA's own decomposition gives NaN where LAPACK gives infinity; a limitation says so."""
    harness = all_harnesses()["cholesky_inf_float32"]
    reduced = reduce(harness, Cell(harness.name, "compiled", "tf"))
    assert "nan" in reduced.result.message and "gives np.float32(inf)" in reduced.result.message
    (arg,) = reduced.trial.runs[0]
    assert arg.shape == (2, 2)
    program = jax.make_jaxpr(reduced.trial.fun)(arg)
    assert [eqn.primitive.name for eqn in program.eqns] == ["cholesky"]
    assert reproducer.run(script_of(reduced)) == Outcome.DIFFERENT


def harness(fun, *args, **fields) -> Harness:
    return Harness("sin", "case", fun, args, close(), **fields)


def network(x, w):
    """A program in which one element of one operand of one equation is lowered wrongly."""
    y = jnp.tanh(x @ w)
    return jax.nn.relu(y).sum(), jnp.sin(4 * y + 2).reshape(-1)[::-1]


X = np.linspace(-1, 1, 35, dtype=np.float32).reshape(5, 7)
W = np.linspace(-1, 2, 42, dtype=np.float32).reshape(7, 6)


@pytest.mark.parametrize("variant", ["plain", "symbolic batch"])
def test_the_guilty_equation_and_element(wrong_sine, variant):
    reduced = reduce(harness(network, X, W), Cell("sin_case", "graph", "tf", variant=variant))
    assert reduced.result.outcome == Outcome.DIFFERENT
    (arg,) = reduced.trial.runs[0]
    assert arg.size == 1 and arg.item() > 3
    program = jax.make_jaxpr(reduced.trial.fun)(arg)
    assert [eqn.primitive.name for eqn in program.eqns] == ["sin"]
    assert reproducer.run(script_of(reduced)) == Outcome.DIFFERENT


def test_axes_that_belong_together_are_shortened_together(refused_sine):
    """The program cannot be cut into equations, as a loop is one, and shapes of products match."""

    def fun(x, w):
        return lax.fori_loop(0, 3, lambda i, x: jnp.sin(x @ w @ w.T), x)

    reduced = reduce(harness(fun, X, W), Cell("sin_case", "graph", "tf"))
    assert reduced.result.outcome == Outcome.LOWERING_ERROR
    w, x = reduced.trial.runs[0]
    assert sorted(x.shape) == [1, 3] and w.shape == (x.shape[1], 1)
    assert not x.any() and not w.any()
    assert reproducer.run(script_of(reduced)) == Outcome.TF_ERROR


def test_a_script_of_keys_constants_and_bodies(wrong_sine):
    table = np.array([1.5, np.nan, -0.0, np.inf], np.float64)

    def fun(key, index):
        noise = jax.random.uniform(key, (2,))
        entry = jnp.asarray(table)[index]
        return lax.cond(index > 0, lambda: jnp.sin(3 + entry + noise), lambda: noise)

    cell = Cell("sin_case", "graph", "tf")
    trial = trial_of(harness(fun, jax.random.key(7), np.int32(0)), cell)
    text = reproducer.script(cell, trial, "")
    assert "wrap_key_data" in text and reproducer.run(text) == Outcome.EQUAL
    index = "np.array(0, np.int32)[()]"
    assert text.count(index) == 1
    other = text.replace(index, index.replace("0", "3", 1))
    assert reproducer.run(other) == Outcome.DIFFERENT


@pytest.mark.parametrize(
    "name", ["pvary_float32", "scan_bool_reverse=False", "gather_arrays_float8_e4m3fn"]
)
def test_a_script_computes_what_the_harness_does(name):
    cell = Cell(name, "graph", "tf")
    text = reproducer.script(cell, trial_of(all_harnesses()[name], cell), "")
    assert reproducer.run(text) == Outcome.EQUAL


def test_what_does_not_fail_is_not_reduced():
    with pytest.raises(ReductionError, match="sin_case, graph on tf, is equal to JAX"):
        reduce(harness(jnp.sin, X), Cell("sin_case", "graph", "tf"))
    with pytest.raises(ReductionError, match="JAX itself cannot run sin_case"):
        reduce(harness(jnp.matmul, X, X), Cell("sin_case", "graph", "tf"))
    with pytest.raises(ReductionError, match="jvp and vjp"):
        reduce(harness(jnp.sin, X), Cell("sin_case", "graph", "tf", variant="gradient"))


@pytest.mark.parametrize("value", [False, True])
def test_a_script_has_its_own_settings_and_leaves_those_of_others(value):
    """Those of all threads, too, which the script changes, and this thread may not see."""

    def of_all_threads():
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: dict(jax.config.values)).result()

    text = f"import jax, sys; jax.config.update('jax_enable_x64', {value})\n"
    text += f"sys.exit(0 if jax.config.jax_enable_x64 == {value} else 1)"
    before = dict(jax.config.values), of_all_threads()
    assert reproducer.run(text) == Outcome.EQUAL
    assert (dict(jax.config.values), of_all_threads()) == before


def test_what_has_no_expression(refused_sine):
    def fun(x):
        return jax.pure_callback(lambda x: x, x, jnp.sin(x))

    cell = Cell("sin_case", "graph", "tf")
    with pytest.raises(reproducer.NotWritableError, match="function"):
        reproducer.script(cell, trial_of(harness(fun, X), cell), "")


def test_programs_that_crash_or_hang_are_run_apart():
    cell = Cell("sin_case", "graph", "tf")

    class Pool:
        def schedule(self, function, args, timeout):
            assert function is reproducer.run
            future = concurrent.futures.Future()
            future.set_exception(args[0]) if timeout else future.set_result(Outcome.EQUAL)
            return future

    def outcome(error, timeout=60):
        return bisect._outcome(cell, Pool(), error, timeout)

    crashed = outcome(pebble.ProcessExpired("It died.", -6))
    assert (crashed.outcome, crashed.verdict) == (Outcome.CRASH, Verdict.UNEXPECTED)
    assert outcome(TimeoutError()).outcome == Outcome.TIMEOUT
    assert outcome("", 0).outcome == Outcome.EQUAL


def test_unknown_harnesses(capsys):
    assert bisect.bisect(all_harnesses, "cholesky_inf_float23") == 2
    assert "did you mean cholesky_inf_float32" in capsys.readouterr().err
