"""Conversions of literals are literals, where the dtype has the number."""

import jax
import numpy as np
import pytest
from jax import lax

from lowering.passes.inlining import inline_calls
from lowering.passes.literals import convert_literals, flush_literals
from tests.passes.programs import assert_same, primitives, traced


@pytest.mark.parametrize(
    ("value", "dtype", "is_converted"),
    [
        (np.int32(3), np.float32, True),
        (np.bool_(True), np.int32, True),
        (np.int32(2**24 + 1), np.float32, False),
        (np.float32(0.5), np.float16, True),
        (np.float32(0.1), np.float16, False),
        (0.1, np.float32, True),
        (np.float32(2.5), np.int32, False),
        (np.float32(np.nan), np.int32, False),
        (np.float32(np.nan), np.float16, True),
    ],
)
def test_conversions(value, dtype, is_converted):
    def fun(x):  # A call, as JAX converts a number at once.
        return x * jax.jit(lambda y: lax.convert_element_type(y, dtype))(value)

    x = np.ones(3, dtype)
    before = inline_calls(traced(fun, x), frozenset())
    after = convert_literals(before)
    assert primitives(before) == ["convert_element_type", "mul"]
    assert primitives(after) == (["mul"] if is_converted else primitives(before))
    assert_same(before, after, x)


def test_a_broadcast_of_a_broadcast_number():
    def fun(x):
        rows = lax.broadcast_in_dim(np.float32(2), (3,), ())
        return x + lax.broadcast_in_dim(rows, (2, 3), (1,))

    x = np.ones((2, 3), np.float32)
    before = traced(fun, x)
    after = convert_literals(before)
    assert primitives(after) == ["broadcast_in_dim", "add"]
    assert_same(before, after, x)


def test_a_result_that_is_a_literal():
    before = inline_calls(traced(jax.jit(lambda: lax.convert_element_type(3, np.float32))), ())
    assert_same(before, convert_literals(before))


def test_nothing_to_convert():
    before = traced(lambda x: lax.convert_element_type(x, np.int32), np.float32(1))
    assert convert_literals(before) is before


@pytest.mark.parametrize("tiny", [1e-40, -1e-40])
def test_subnormal_literals_are_zeros_as_they_are_for_jax(tiny):
    after = flush_literals(traced(lambda x: (x + tiny) * np.float32(1e-30), np.float32(1)))
    values = [x.val for eqn in after.eqns for x in eqn.invars if hasattr(x, "val")]
    assert values == [0, np.float32(1e-30)] and np.signbit(values[0]) == (tiny < 0)


def test_subnormal_literals_that_are_moved_stay():
    for fun in (lambda x: lax.select(x > 0, x, np.float32(1e-40)), lambda x: x + 1):
        jaxpr = traced(fun, np.float32(1))
        assert flush_literals(jaxpr) is jaxpr
