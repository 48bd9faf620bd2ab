"""References that a program makes are replaced by the values that they hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering
from tests.helpers import MODES, in_mode

X = np.array([1.0, -2.0, 3.0], np.float32)


def reads_and_writes(x):
    ref = jax.new_ref(jnp.zeros(3))
    ref[...] = x
    ref[1] += 2.0
    return ref[...] + 1


def in_a_loop(x):
    ref = jax.new_ref(x)

    def body(i, total):
        ref[i] = ref[i] * 2
        return total + ref[i]

    return lax.fori_loop(0, 3, body, 0.0), ref[...]


def in_branches(x):
    ref = jax.new_ref(x)

    def write(value):
        ref[0] = value
        return value

    return lax.cond(x[0] > 0, write, lambda value: -value, x[2]), ref[...]


def inside_of_a_body(x):
    def body(carry, element):
        ref = jax.new_ref(carry)
        ref[...] += element
        return ref[...], ref[...] * 2

    return lax.scan(body, jnp.float32(0), x)


def in_a_call(x):
    return jax.jit(reads_and_writes)(x) * jax.jit(reads_and_writes)(2 * x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "fun", [reads_and_writes, in_a_loop, in_branches, inside_of_a_body, in_a_call]
)
def test_same_as_jax(fun, mode):
    expected = jax.tree.leaves(jax.jit(fun)(X))
    actual = jax.tree.leaves(in_mode(lowering.convert(fun), mode)(X))
    for e, a in zip(expected, actual, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-6)


def test_a_reference_from_outside_is_refused():
    ref = jax.new_ref(jnp.zeros(3))

    def fun(x):
        ref[...] = x
        return x

    with pytest.raises(lowering.UnsupportedError, match="reference from outside"):
        lowering.convert(fun)(X)
