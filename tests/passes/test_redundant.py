"""Equations that compute nothing new fall away, jaxpr in and jaxpr out."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from lowering.arrays import narrow_numbers
from lowering.passes.inlining import inline_calls
from lowering.passes.literals import convert_literals
from lowering.passes.simplify.redundant import tidy
from tests.passes.meanings import run
from tests.passes.programs import assert_same, primitives, traced

INTEGERS = np.arange(-12, 12, dtype=np.int32)
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def _twice(x):
    return jnp.sin(x) + jnp.sin(x)


def _fit(integers):
    return narrow_numbers.fit(integers, np.dtype(ml_dtypes.int4), integers.dtype)


# A program, its arguments, and what is left of it.
@jax.jit
def _plus_one(x):
    return x + 1


def _three():
    """A number that is known once the call is inlined."""
    return _plus_one(jnp.float32(2))


CASES = {
    "the same twice": (_twice, (X,), "sin add"),
    "the same of other operands": (lambda x: jnp.sin(x) + jnp.sin(x + 1), (X,), "sin add sin add"),
    "random bits twice": (
        lambda k: jax.random.key_data(k)[0] + jax.random.key_data(k)[0], (jax.random.key(0),),
        "random_unwrap slice squeeze add",
    ),
    "bodies twice": (
        lambda x: lax.map(jnp.sin, x) + lax.map(jnp.sin, x), (X,), "scan scan add"
    ),
    "absolute values of squares": (lambda x: jnp.abs(jnp.exp(x)), (X,), "exp"),
    "absolute values": (lambda x: jnp.abs(x + 1), (X,), "add abs"),
    "axes of what is known": (
        lambda x: x + _three()[None] * _three().reshape(1), (X,),
        "broadcast_in_dim reshape mul broadcast_in_dim add",
    ),
    "a bound that holds": (lambda x: jnp.maximum(jnp.exp(x), -1), (X,), "exp"),
    "a bound that may not": (lambda x: jnp.maximum(jnp.exp(x), 1), (X,), "exp max"),
    "an upper bound that holds": (lambda x: jnp.minimum(lax.logistic(x), 1), (X,), "logistic"),
    "bounds that hold": (lambda x: lax.clamp(0.0, lax.logistic(x), 1.0), (X,), "logistic"),
    "bounds that may not": (lambda x: lax.clamp(0.5, lax.logistic(x), 1.0), (X,), "logistic clamp"),
    "floats that fit integers": (
        lambda x: jnp.round(lax.clamp(-8.5, x, 127.0)).astype(np.int8), (X,),
        "clamp round to_integers",
    ),
    "floats that may not fit integers": (
        lambda x: lax.clamp(-1.0, x, 128.0).astype(np.int8), (X,), "clamp convert_element_type"
    ),
    "a choice that is known": (
        lambda x: jnp.where(lax.iota(np.int32, 12).reshape(3, 4) < 0, x, -x), (X,),
        "neg",
    ),
    "a mask that was a number": (lambda x: (x > 0).astype(np.float32).astype(bool), (X,), "gt"),
    "integers that were longer": (
        lambda x: x.astype(np.int8).astype(np.int32).astype(np.int8), (X,), "convert_element_type"
    ),
    "numbers that lost digits": (
        lambda x: x.astype(np.int32).astype(np.float32), (X,),
        "convert_element_type convert_element_type",
    ),
    "numbers that lost bits": (
        lambda x: x.astype(np.int8).astype(ml_dtypes.float8_e4m3fn).astype(np.int8), (X,),
        "convert_element_type convert_element_type convert_element_type",
    ),
    "a smaller mask and one that holds": (
        lambda x: lax.bitwise_and(jnp.ones((3, 4), bool), x[:, :1] > 0), (X,),
        "slice gt broadcast_in_dim",
    ),
    "times one": (lambda x: jnp.sin(x) * 1 + 1 * x, (X,), "sin add"),
    "divided by one": (lambda x: jnp.sin(x) / 1.0, (X,), "sin"),
    "the mean of one": (lambda x: jnp.sin(x[:, :1]).mean(1) * 2, (X,), "slice sin reshape mul"),
    "one divided": (lambda x: 1 / x, (X,), "div"),
    "two conversions": (lambda x: (x > 0).astype(np.int32).astype(np.float32), (X,),
                        "gt convert_element_type"),
    "two conversions that round": (lambda x: x.astype(np.int32).astype(np.float32), (X,),
                                   "convert_element_type convert_element_type"),
    "two reshapes": (lambda x: (x.reshape(12) * 2).reshape(2, 6).reshape(6, 2), (X,),
                     "reshape mul reshape"),
    "a reshape and an axis more": (lambda x: (x.reshape(6, 2)[:, None] * 2), (X,), "reshape mul"),
    "an axis more, repeated": (
        lambda x: jnp.broadcast_to(x.reshape(6, 2)[:, None], (6, 3, 2)), (X,),
        "reshape broadcast_in_dim",
    ),
    "reshapes that undo each other": (lambda x: x.reshape(12).reshape(3, 4), (X,), ""),
    "numbers": (lambda x: x * lax.add(lax.mul(np.float32(2), np.float32(3)), np.float32(1)), (X,),
                "mul"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_left(case):
    fun, args, left = CASES[case]
    before = convert_literals(inline_calls(traced(fun, *args), frozenset()))
    after = tidy(before)
    assert primitives(after) == left.split()
    assert_same(before, after, *args)


def test_integers_that_floats_approximate():
    x = np.array([2**60 + 1, 2**53 + 1, 7])
    with jax.enable_x64(True):
        before = traced(lambda x: x.astype(np.float64).astype(np.int64), x)
        after = tidy(before)
        assert primitives(after) == ["convert_element_type"] * 2
        assert_same(before, after, x)


def test_nothing_to_tidy():
    before = traced(lambda x: jnp.sin(x) + 1, X)
    assert tidy(before) is before


@pytest.mark.parametrize(
    ("fun", "left"),
    [
        (lambda i: _fit(lax.clamp(-8, i, 7)), "clamp"),
        (lambda i: _fit(lax.clamp(-9, i, 7)), "clamp fit"),
        (lambda i: _fit(_fit(i)), "fit"),
    ],
)
def test_integers_that_fit_fewer_bits(fun, left):
    after = tidy(convert_literals(traced(fun, INTEGERS)))
    assert primitives(after) == left.split()
    wrapped = np.clip(INTEGERS, -9 if "fit" in left else -8, 7) if "clamp" in left else INTEGERS
    (found,) = run(after, INTEGERS)
    np.testing.assert_array_equal(found, wrapped.astype(ml_dtypes.int4).astype(np.int32))
