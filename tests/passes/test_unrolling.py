"""How many elements a step of a scan takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes.unrolling import unroll_short_scans, widen_steps
from lowering.targets import PORTABLE, TF, TFJS, Mode
from tests.passes.programs import equation, traced


def scan(length, unroll=1, repeats=1):
    def step(carry, x):
        for _ in range(repeats):
            carry = jnp.sin(carry) + x
        return carry, carry

    def fun(x):
        return lax.scan(step, jnp.float32(0), x, unroll=unroll)

    return traced(fun, np.zeros(length, np.float32))


def unroll_of(jaxpr):
    return equation(jaxpr, "scan").params["unroll"]


@pytest.mark.parametrize(("length", "expected"), [(0, 0), (1, 1), (30, 30), (100, 1)])
def test_short_scans_are_unrolled(length, expected):
    assert unroll_of(unroll_short_scans(scan(length), TF)) == expected


def test_scans_that_do_much_are_not_unrolled():
    assert unroll_of(unroll_short_scans(scan(10, repeats=10), TF)) == 1


@pytest.mark.parametrize(
    ("length", "target", "expected"), [(40, PORTABLE, 40), (40, TFJS, 1), (2, TFJS, 2)]
)
def test_equations_that_become_many_ops_count_for_as_many(length, target, expected):
    def draws(key):
        return lax.scan(lambda k, _: (k, jax.random.bits(k)), key, None, length)

    jaxpr = traced(draws, jax.random.key(0))
    assert unroll_of(unroll_short_scans(jaxpr, target)) == expected
    assert unroll_of(widen_steps(jaxpr, Mode.GRAPH, target)) == (1 if target is TFJS else 8)


@pytest.mark.parametrize(
    ("mode", "length", "expected"),
    [(Mode.GRAPH, 800, 8), (Mode.GRAPH, 801, 3), (Mode.GRAPH, 797, 1), (Mode.COMPILED, 800, 1)],
)
def test_a_step_takes_several_elements(mode, length, expected):
    assert unroll_of(widen_steps(scan(length), mode, TF)) == expected


def test_the_user_has_the_last_word():
    assert unroll_of(widen_steps(scan(800, unroll=2), Mode.GRAPH, TF)) == 2
