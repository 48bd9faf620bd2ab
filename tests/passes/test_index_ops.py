"""Rows that are taken, and one-hot vectors, jaxpr in and jaxpr out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes.fusion.index_ops import with_index_ops
from lowering.passes.inlining import inline_calls
from lowering.passes.literals import convert_literals
from lowering.passes.simplify.redundant import tidy
from tests.passes.meanings import assert_means
from tests.passes.programs import equation, primitives, traced

TABLE = np.linspace(0, 1, 24, dtype=np.float32).reshape(6, 4)
ROWS = np.int32([[0, 5, 2], [-1, -6, 3]])
OUTSIDE = np.int32([7, -7, 6, -8, 2])
PLACES = np.int32([0, -1, 3, 2, -4, 1])

# A program, its arguments, and which of the three parameters of `take` are set.
TAKEN = {
    "rows": (lambda x, i: x[i], (TABLE, ROWS), {"wraps", "clips"}),
    "columns": (lambda x, i: x[:, i], (TABLE, ROWS % 4), {"wraps", "clips"}),
    "rows that are inside": (
        lambda x, i: x.at[i].get(mode="promise_in_bounds"), (TABLE, ROWS), {"wraps", "clips"}
    ),
    "clipped rows": (
        lambda x, i: x.at[i].get(mode="clip"), (TABLE, OUTSIDE), {"wraps", "clips"}
    ),
    "rows or NaN": (
        lambda x, i: x.at[i].get(mode="fill"), (TABLE, OUTSIDE), {"wraps", "clips", "fill_value"}
    ),
    "integers or their least": (
        lambda x, i: jnp.take(x, i, 0), (TABLE.astype(np.int32), OUTSIDE),
        {"wraps", "clips", "fill_value"},
    ),
    "rows or a number": (
        lambda x, i: x.at[i].get(mode="fill", fill_value=3), (TABLE, OUTSIDE),
        {"wraps", "clips", "fill_value"},
    ),
    "jnp.take": (lambda x, i: jnp.take(x, i, 1), (TABLE, ROWS), {"wraps", "clips", "fill_value"}),
    "a row": (lambda x, i: x[i], (TABLE, np.int32(-2)), {"wraps", "clips"}),
    "a row of a loop": (
        lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False), (TABLE, np.int32(9)),
        {"wraps", "clips"},
    ),
    "rows of a batch": (
        lambda x, i: jnp.take_along_axis(x, i[:, None], 1), (TABLE, PLACES),
        {"wraps", "clips", "fill_value"},
    ),
    "elements of a batch": (
        lambda x, i: jnp.take_along_axis(x, i, 1, mode="clip"), (TABLE, PLACES[:, None]),
        {"wraps", "clips"},
    ),
    "an element of each row": (
        lambda x, i: x[jnp.arange(6), i], (TABLE, PLACES), {"wraps", "clips"}
    ),
    "elements of each row": (
        lambda x, i: x[jnp.arange(6)[:, None], jnp.stack([i, -i], 1)], (TABLE, PLACES),
        {"wraps", "clips"},
    ),
    "matrices of each batch": (
        lambda x, i: x.reshape(2, 3, 4)[jnp.arange(2), i], (TABLE, PLACES[:2]), {"wraps", "clips"}
    ),
    "rows of mapped tables": (
        jax.vmap(lambda x, i: x[i]), (TABLE.reshape(2, 3, 4), ROWS[:2]), {"wraps", "clips"}
    ),
    "places of the greatest": (
        lambda x, i: jnp.take_along_axis(x, lax.top_k(x, 2)[1], 1), (TABLE, ROWS), {"wraps"}
    ),
    "rows by indices with bounds": (lambda x, i: x[lax.clamp(0, i, 5)], (TABLE, ROWS), {"wraps"}),
}  # fmt: skip
NOT_TAKEN = {
    "elements": (lambda x, i: x[i, i % 4], (TABLE, ROWS)),
    "blocks": (lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 0), (TABLE, np.int32(3))),
    "rows of 16 bits": (lambda x, i: x[i], (TABLE.astype(np.float16), ROWS)),
    "some columns of rows": (lambda x, i: x[i, 1:3], (TABLE, ROWS)),
}
ONE_HOT = {
    "jax.nn.one_hot": (lambda i: jax.nn.one_hot(i, 5), (ROWS,)),
    "integers": (lambda i: jax.nn.one_hot(i, 5, dtype=np.int32), (ROWS,)),
    "by hand": (lambda i: (i[:, None] == jnp.arange(5)).astype(np.float32), (OUTSIDE,)),
    "by hand, exchanged": (lambda i: (jnp.arange(5) == i[:, None]).astype(np.float32), (OUTSIDE,)),
}
NOT_ONE_HOT = {
    "another axis": (lambda i: jax.nn.one_hot(i, 5, axis=0), (ROWS,)),
    "bools": (lambda i: i[:, None] == jnp.arange(5), (OUTSIDE,)),
    "other numbers": (lambda i: (i[:, None] == jnp.arange(1, 6)).astype(np.float32), (OUTSIDE,)),
    "less": (lambda i: (i[:, None] < jnp.arange(5)).astype(np.float32), (OUTSIDE,)),
    "16 bits": (lambda i: jax.nn.one_hot(i, 5, dtype=np.float16), (ROWS,)),
}
LOOKED_UP = {
    "rows": (lambda x, i: jax.nn.one_hot(i, 6) @ x, (TABLE, ROWS)),
    "rows and zeros": (lambda x, i: jax.nn.one_hot(i, 6) @ x, (TABLE, OUTSIDE)),
    "elements": (lambda x, i: jnp.dot(jax.nn.one_hot(i, 6), x), (TABLE[:, 0], OUTSIDE)),
    "reshaped vectors": (lambda x, i: jax.nn.one_hot(i, 6).reshape(-1, 6) @ x, (TABLE, ROWS)),
    "vectors of integers": (
        lambda x, i: jax.nn.one_hot(i, 6, dtype=np.int32).astype(x.dtype) @ x, (TABLE, OUTSIDE)
    ),
    "matrices": (
        lambda x, i: jnp.tensordot(jax.nn.one_hot(i, 6), x, 1), (TABLE.reshape(6, 2, 2), ROWS)
    ),
}  # fmt: skip
NOT_LOOKED_UP = {
    "vectors of other shapes": (
        lambda x, i: jax.nn.one_hot(i, 6).reshape(-1, 3) @ x[:3], (TABLE, ROWS)
    ),
    "from the right": (lambda x, i: x.T @ jax.nn.one_hot(i, 6).T, (TABLE, OUTSIDE)),
    "sums of rows": (lambda x, i: jax.nn.one_hot(i, 6).T @ x[:5], (TABLE, OUTSIDE)),
}  # fmt: skip


def _after(fun, *args):
    jaxpr = convert_literals(inline_calls(traced(fun, *args), frozenset()))
    return with_index_ops(tidy(jaxpr))


@pytest.mark.parametrize("case", TAKEN)
def test_rows_are_taken(case):
    fun, args, expected = TAKEN[case]
    after = _after(fun, *args)
    params = equation(after, "take").params
    assert {k for k in ("wraps", "clips") if params[k]} <= expected
    assert (params["fill_value"] is not None) == ("fill_value" in expected)
    assert not {"gather", "dynamic_slice", "select_n"} & set(primitives(after))
    assert_means(after, fun, *args)


@pytest.mark.parametrize("case", NOT_TAKEN)
def test_what_is_no_row(case):
    fun, args = NOT_TAKEN[case]
    after = _after(fun, *args)
    assert "take" not in primitives(after)
    assert_means(after, fun, *args)


@pytest.mark.parametrize("case", ONE_HOT)
def test_one_hot_vectors(case):
    fun, args = ONE_HOT[case]
    after = _after(fun, *args)
    assert primitives(after) == ["one_hot"]
    assert_means(after, fun, *args)


@pytest.mark.parametrize("case", NOT_ONE_HOT)
def test_what_is_not_one_hot(case):
    fun, args = NOT_ONE_HOT[case]
    after = _after(fun, *args)
    assert "one_hot" not in primitives(after)
    assert_means(after, fun, *args)


@pytest.mark.parametrize("case", LOOKED_UP)
def test_rows_are_looked_up(case):
    fun, args = LOOKED_UP[case]
    after = _after(fun, *args)
    assert equation(after, "take").params["fill_value"] == 0
    assert not {"dot_general", "one_hot"} & set(primitives(after))
    assert_means(after, fun, *args)


@pytest.mark.parametrize("case", NOT_LOOKED_UP)
def test_what_is_not_looked_up(case):
    fun, args = NOT_LOOKED_UP[case]
    after = _after(fun, *args)
    assert "dot_general" in primitives(after)
    assert_means(after, fun, *args)
