"""Parameters of equations have Python's own integers, wherever JAX left NumPy's."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.plain import plain

X = np.arange(4, dtype=np.float32) + 1


def numpy_integers(jaxpr):
    """The NumPy integers among the parameters of a jaxpr and of all jaxprs in it."""
    found = []
    for eqn in jaxpr.eqns:
        pending = list(eqn.params.values())
        while pending:
            value = pending.pop()
            if isinstance(value, np.integer | np.bool_):
                found.append(value)
            elif isinstance(value, tuple | list):
                pending.extend(value)
        found += [x for called in called_jaxprs(eqn) for x in numpy_integers(called)]
    return found


def pad(x):
    return lax.pad(x, np.float32(0), [(np.int64(1), np.int32(2), np.int64(0))])


def in_a_call(x):
    return jax.jit(pad)(x) + jax.jit(pad)(2 * x)


def in_a_loop(x):
    return lax.fori_loop(0, 3, lambda i, c: lax.slice(pad(c), (1,), (5,)), x)


@pytest.mark.parametrize("fun", [pad, in_a_call, in_a_loop])
def test_numpy_integers_are_replaced(fun):
    jaxpr = jax.make_jaxpr(fun)(X)
    assert numpy_integers(jaxpr)
    changed = plain(jaxpr)
    assert not numpy_integers(changed)
    np.testing.assert_array_equal(jex_core.jaxpr_as_fun(changed)(X), jax.tree.leaves(fun(X)))


def test_a_plain_jaxpr_stays_the_same_object():
    jaxpr = jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, x))(X)
    assert plain(jaxpr) is jaxpr


def test_jaxprs_that_are_shared_stay_shared():
    body = jax.jit(pad)
    jaxpr = jax.make_jaxpr(lambda x: (body(x), body(2 * x)))(X)
    called = [inner for eqn in plain(jaxpr).eqns for inner in called_jaxprs(eqn)]
    assert len(called) == 2
    assert called[0] is called[1]


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: (jnp.pad(x, ((1, 1),)) ** 2).sum(),
        jnp.prod,
        lambda x: lax.reduce_window(x, 0.0, lax.add, (np.int64(3),), (1,), "SAME")[np.int64(1)],
        lambda x: jnp.tile(x, np.int32(2)).reshape(np.array([2, 4])).sum(),
        lambda x: jnp.roll(x, np.int64(1))[np.int16(0) : np.int8(2)].sum(),
    ],
)
def test_gradients_of_programs_with_numpy_integers(fun):
    for derivative in (jax.grad(fun), jax.jacfwd(fun), jax.hessian(fun)):
        np.testing.assert_allclose(lowering.convert(derivative)(X), derivative(X), rtol=1e-6)


def test_constants_are_arrays_of_numpy():
    table, key = jnp.arange(4.0), jax.random.key(0)

    def body(i, c):
        return c + table[i] + jax.random.normal(key)

    changed = plain(jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, body, x))(X))

    def constants(jaxpr):
        inner = [
            c for eqn in jaxpr.eqns for called in called_jaxprs(eqn) for c in constants(called)
        ]
        return [*getattr(jaxpr, "consts", ()), *inner]

    arrays = [
        c for c in constants(changed) if not jax.dtypes.issubdtype(c.dtype, jax.dtypes.prng_key)
    ]
    assert arrays
    assert all(isinstance(c, np.ndarray) for c in arrays)


def test_operands_that_are_constants():
    index, updates = jnp.array([[0], [5]]), jnp.ones((2,), jnp.float32)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))

    def fun(x):
        return lax.scatter_add(x, index, updates, numbers, mode="drop")

    np.testing.assert_array_equal(lowering.convert(fun)(X), fun(X))
