"""Loop invariants and contractions of all steps leave loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import jax_compat
from lowering.passes.hoisting import contract_ahead, hoist_invariants
from lowering.passes.inlining import inline_calls
from lowering.targets import Mode
from tests.passes.programs import assert_same, counts, equation, primitives, traced

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.linspace(0, 1, 9, dtype=np.float32).reshape(3, 3)


def recurrent(w, xs):
    def step(carry, x):
        carry = jnp.tanh(carry @ jnp.sin(w) + x @ jnp.cos(w))
        return carry, carry * 2

    return lax.scan(step, jnp.zeros(3), xs)


def test_invariants_of_a_scan_come_before_it():
    before = traced(recurrent, W, X)
    after = hoist_invariants(before)
    body = equation(after, "scan").params["jaxpr"]
    assert counts(after)["sin"] == counts(after)["cos"] == 1
    assert not {"sin", "cos"} & set(primitives(body))
    assert jax_compat.scan_counts(equation(after, "scan").params) == (3, 1)
    assert_same(before, after, W, X)


def test_invariants_of_a_while_loop_come_before_it():
    def fun(n, x):
        return lax.while_loop(
            lambda c: c[0] < jnp.square(n), lambda c: (c[0] + 1, c[1] * jnp.sin(n)), (0.0, x)
        )

    before = traced(fun, np.float32(2), np.float32(3))
    after = hoist_invariants(before)
    loop = equation(after, "while")
    assert {"square", "sin"} <= set(primitives(after))
    assert "square" not in primitives(loop.params["cond_jaxpr"])
    assert "sin" not in primitives(loop.params["body_jaxpr"])
    assert_same(before, after, np.float32(2), np.float32(3))


def test_broadcasts_stay_in_the_loop():
    def fun(x):
        return lax.fori_loop(0, 3, lambda i, y: y + jnp.full(100, x), jnp.zeros(100))

    after = hoist_invariants(traced(fun, np.float32(1)))
    bodies = [eqn.params.get("jaxpr") or eqn.params.get("body_jaxpr") for eqn in after.eqns]
    assert any(body and "broadcast_in_dim" in primitives(body) for body in bodies)


def test_what_is_made_of_literals_hinders_nothing():
    def fun(x):
        def step(carry, _):
            rectified = jnp.where(x > 0, x, jnp.zeros(3))
            noise = jax.random.uniform(jax.random.key(0), (3,))
            return jnp.cos(carry) * rectified + noise, None

        return lax.scan(step, x, None, length=4)[0]

    before = inline_calls(traced(fun, X[0]), frozenset())
    after = hoist_invariants(before)
    body = primitives(equation(after, "scan").params["jaxpr"])
    assert "cos" in body and not {"gt", "select_n", "random_bits"} & set(body)
    assert_same(before, after, X[0])


@pytest.mark.parametrize("mode", Mode)
def test_contractions_of_elements_are_one(mode):
    after = contract_ahead(hoist_invariants(traced(recurrent, W, X)), mode)
    body = equation(after, "scan").params["jaxpr"]
    assert counts(after)["dot_general"] == counts(body)["dot_general"] == 1
    product = equation(after, "dot_general")
    assert product.outvars[0].aval.shape == (4, 3)


def test_contractions_with_large_results_stay_where_xla_compiles():
    xs = np.zeros((4, 5000, 3), np.float32)
    before = traced(lambda w, xs: lax.scan(lambda c, x: (c + x @ w, ()), xs[0], xs), W, xs)
    assert counts(contract_ahead(before, Mode.GRAPH))["dot_general"] == 1
    assert counts(contract_ahead(before, Mode.COMPILED))["dot_general"] == 0


def test_unrolled_scans_keep_their_contractions():
    def fun(w, xs):
        return lax.scan(lambda c, x: (c + x @ w, ()), jnp.zeros(3), xs, unroll=True)

    assert counts(contract_ahead(traced(fun, W, X), Mode.GRAPH))["dot_general"] == 0


def test_one_body_in_two_loops():
    def body(carry, x):
        return carry + x * jnp.sin(W[0]), carry

    def fun(x):
        first, _ = lax.scan(body, jnp.zeros(3), x)
        return lax.scan(body, first, x)

    before = traced(fun, X)
    after = hoist_invariants(before)
    made = [var for eqn in after.eqns for var in eqn.outvars]
    assert len(made) == len(set(made))
