"""Axes of size one that a program inserts and takes out again are left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes.inlining import inline_calls
from lowering.passes.simplify.unit_axes import drop_unit_axes
from tests.passes.meanings import assert_means
from tests.passes.programs import counts, primitives, traced

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
Y = np.cos(X)
ONE = X[:1]


def _product(x, y):
    return jnp.einsum("bik,bjk->bij", x, y)


# The primitives that are left.
DROPPED = {
    "elementwise": (lambda x: jnp.sin(x[:, None] * 2)[:, 0], ["mul", "sin"]),
    "transpose": (lambda x: x[..., None].transpose(3, 0, 1, 2)[0], []),
    "part of a transpose": (lambda x: x[None].transpose(0, 2, 3, 1)[0], ["transpose"]),
    "reduction": (lambda x: x[:, None].max(2)[:, 0], ["reduce_max"]),
    "index of a maximum": (lambda x: x[:, None].argmax(2)[:, 0], ["argmax"]),
    "concatenation": (
        lambda x: jnp.concatenate([x[None], jnp.exp(x)[None]], 2)[0],
        ["exp", "concatenate"],
    ),
    "reshape of more": (lambda x: x.reshape(6, 1, 4).transpose(1, 0, 2)[0], ["reshape"]),
    "stays broadcast": (
        lambda x: (x.sum(2)[:, None, :, None] * 2)[:, 0],
        ["reduce_sum", "broadcast_in_dim", "mul"],
    ),
}
STAYS = {
    "argument": lambda x: (x[:1] * 2).transpose(1, 0, 2),
    "result": lambda x: jnp.sin(x[None]),
    "broadcast": lambda x: (x - x.max(1, keepdims=True))[None] * 2,
    "concatenated": lambda x: jnp.stack([x, x]).reshape(2, 2, 12),
    "reduced": lambda x: x[:, None].max(1),
    "product of a vector": lambda x: (x[0, :1] @ x[1].T)[0],
    "used by another primitive": lambda x: lax.rev(x[None], (0,))[0],
}


def _dropped(fun, *args):
    return drop_unit_axes(inline_calls(traced(fun, *args), frozenset()))


@pytest.mark.parametrize("case", DROPPED)
def test_axes_are_dropped(case):
    fun, expected = DROPPED[case]
    after = _dropped(fun, X)
    cut = {"slice", "squeeze"}
    assert [name for name in primitives(after) if name not in cut] == expected
    assert all(var.aval.ndim <= 3 for eqn in after.eqns for var in eqn.outvars)
    assert_means(after, fun, X)


@pytest.mark.parametrize("case", STAYS)
def test_axes_stay(case):
    before = inline_calls(traced(STAYS[case], X), frozenset())
    after = drop_unit_axes(before)
    assert_means(after, STAYS[case], X)
    assert primitives(after) == primitives(before)


@pytest.mark.parametrize("axis", (0, 1, 2))
def test_products(axis):
    def fun(x, y):
        x, y = (jnp.expand_dims(z, axis) for z in (x, y))
        return jnp.einsum("abcd,abed->abce", x, y) if axis < 2 else x * y

    after = _dropped(lambda x, y: jnp.squeeze(fun(x, y), axis), X, Y)
    assert not {"broadcast_in_dim", "reshape", "squeeze"} & set(primitives(after))
    assert_means(after, lambda x, y: jnp.squeeze(fun(x, y), axis), X, Y)


def test_free_axis_of_a_product():
    def fun(x, y):
        return jnp.einsum("bgik,bjk->gbji", x[:, None], y)[0]

    after = _dropped(fun, X, Y)
    assert primitives(after) == ["dot_general"]
    assert_means(after, fun, X, Y)


def test_product_with_itself():
    def fun(x):
        x = x[:, None]
        return jnp.einsum("bgik,bhjk->bghij", x, x)[:, 0, 0]

    assert_means(_dropped(fun, X), fun, X)


def test_constants_and_arguments():
    mask = ONE > 0

    def fun(x, one):
        return (jnp.where(mask, x[:1], 0)[0] + one[0])[None, None].reshape(12)

    assert_means(_dropped(fun, X, ONE), fun, X, ONE)


def test_attention():
    def fun(q, k, v):
        return jax.nn.dot_product_attention(q, k, v)

    args = [np.cos(np.arange(48, dtype=np.float32) + i).reshape(2, 3, 2, 4) for i in range(3)]
    after = _dropped(fun, *args)
    found = counts(after)
    assert not found["reshape"] and found["dot_general"] == 2 and found["transpose"] <= 1
    assert_means(after, fun, *args)


def test_one_query():
    """The query keeps an axis, so that products stay products of matrices."""
    args = [np.cos(np.arange(8 * n, dtype=np.float32)).reshape(1, n, 2, 4) for n in (1, 3, 3)]
    after = _dropped(jax.nn.dot_product_attention, *args)
    assert not {"reshape", "broadcast_in_dim"} & set(primitives(after)[:2])
    products = [eqn for eqn in after.eqns if eqn.primitive.name == "dot_general"]
    assert all(eqn.outvars[0].aval.ndim == 4 for eqn in products)
    assert_means(after, jax.nn.dot_product_attention, *args)


def test_symbolic_sizes():
    x = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, n, 4"), np.float32)
    after = _dropped(lambda x: jnp.sin(x[:, None].transpose(1, 0, 2, 3)).squeeze(0), x)
    assert primitives(after) == ["sin"]


def test_nothing_to_drop():
    before = traced(lambda x: x.transpose(1, 0, 2).reshape(6, 4) * 2, X)
    assert drop_unit_axes(before) is before
