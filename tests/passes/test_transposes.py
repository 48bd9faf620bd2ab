"""Transposes go in front of reductions, and behind the products that take them in."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes.inlining import inline_calls
from lowering.passes.simplify.transposes import lift_transposes
from tests.passes.meanings import assert_means
from tests.passes.programs import primitives, traced

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
ORDER = (1, 0, 2)


def _product(x):
    return lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,))))


# The primitives that are left.
LIFTED = {
    "maximum": (
        lambda x: (x.transpose(ORDER), lax.reduce_max(x, (2,)).T),
        "transpose reduce_max",
    ),
    "maximum with a bound": (
        lambda x: (x.transpose(ORDER), lax.max(lax.reduce_max(x, (2,)), 0.0).T),
        "transpose reduce_max max",
    ),
    "maximum before the other transpose": (
        lambda x: (lax.reduce_max(x, (2,)).T, x.transpose(ORDER)),
        "transpose reduce_max",
    ),
    "sum of the first axis": (
        lambda x: (x.transpose(2, 0, 1), lax.reduce_sum(x, (0,)).T),
        "transpose reduce_sum",
    ),
    "scaled product": (
        lambda x: lax.exp(_product(x) * 2).transpose(2, 0, 1),
        "dot_general transpose mul exp",
    ),
    "transposed matrices of a batch": (
        lambda x: lax.dot_general(x, x.transpose(0, 2, 1), (((2,), (1,)), ((0,), (0,)))),
        "dot_general",
    ),
    "transposed batch": (
        lambda x: lax.dot_general(x.transpose(1, 0, 2), x, (((2,), (2,)), ((1,), (0,)))),
        "dot_general",
    ),
    "two in a row": (lambda x: x.transpose(1, 2, 0).transpose(ORDER), "transpose"),
}
STAYS = {
    "a product whose result is in another order": lambda x: lax.dot_general(
        x.transpose(1, 0, 2), x[0, 0], (((2,), (0,)), ((), ()))
    ),
    "a transposed product": lambda x: lax.dot_general(
        _product(x).transpose(0, 2, 1), x, (((2,), (1,)), ((0,), (0,)))
    ),
    "a transpose that others need": lambda x: (
        (y := x.transpose(0, 2, 1)),
        lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
    ),
    "another order": lambda x: (x.transpose(2, 0, 1), lax.reduce_max(x, (2,)).T),
    "no other transpose": lambda x: lax.reduce_max(x, (2,)).T,
    "maximum that others need": lambda x: (
        (y := lax.reduce_max(x, (2,))).T[..., None] + x.transpose(ORDER),
        y,
    ),
    "product that others need": lambda x: ((y := _product(x) * 2).transpose(ORDER), y),
    "activation of an argument": lambda x: jnp.exp(x).transpose(ORDER),
    "product with an array": lambda x: (_product(x) * x[..., :3]).transpose(ORDER),
    "product alone": lambda x: _product(x).transpose(ORDER),
}


def _traced(fun):
    return inline_calls(traced(fun, X), frozenset())


@pytest.mark.parametrize("case", LIFTED)
def test_transposes_are_lifted(case):
    fun, expected = LIFTED[case]
    after = lift_transposes(_traced(fun))
    assert primitives(after) == expected.split()
    assert_means(after, fun, X)


@pytest.mark.parametrize("case", STAYS)
def test_transposes_stay(case):
    before = _traced(STAYS[case])
    after = lift_transposes(before)
    assert primitives(after) == primitives(before)
    assert_means(after, STAYS[case], X)
