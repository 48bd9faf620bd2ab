"""Equations with constant operands are computed during lowering, unless results are large."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert
from lowering.core import folding
from lowering.ops import dtypes
from tests.helpers import graph_of, op_types


def test_operations_on_constants_are_folded():
    def fun(x):
        table = jnp.sort(jnp.sin(jnp.arange(10.0)))
        return x + table[3] * jax.random.uniform(jax.random.key(0), ())

    graph = graph_of(fun, np.float32(1))
    assert sorted(op_types(graph)) == ["AddV2", "Const"]
    x = np.float32(2)
    np.testing.assert_allclose(convert(fun)(x), fun(x), rtol=1e-6)


@pytest.mark.parametrize("target", ["tf", "portable"])
@pytest.mark.parametrize("which", [False, True, 0, 2])
def test_a_known_condition_chooses(which, target):
    """Nothing is computed for the other cases, also if the condition is found out by folding."""
    dtype = np.bool_ if isinstance(which, bool) else np.int32
    cases = lax.neg, lax.abs, lax.floor

    def fun(x):
        known = jnp.sort(jnp.full((3, 1), which, dtype), 0)
        shape = jnp.broadcast_shapes(known.shape, x.shape)
        used = cases[:2] if dtype == np.bool_ else cases
        return lax.select_n(jnp.broadcast_to(known, shape), *(f(x) for f in used))

    x = np.float32([[1, 2, np.nan], [0, -0.0, np.inf], [3, 4, 5]])
    chosen = cases[int(which)]
    np.testing.assert_allclose(convert(fun, target=target)(x), chosen(x), rtol=1e-6)
    graph = graph_of(fun, x, target=target)
    needed, waiting = set(), [op for op in graph.get_operations() if op.type == "Identity"][-1:]
    while waiting:
        op = waiting.pop()
        needed.add(op.type)
        waiting += [y.op for y in op.inputs]
    assert needed & {"Neg", "Abs", "Floor"} == {chosen.__name__.capitalize()}
    assert not any(kind.startswith("Select") for kind in needed)


def test_a_table_that_is_known_to_rise_is_searched_once():
    edges = np.linspace(-2, 2, 5).astype(np.float32)
    x = np.float32([-3, -2, 0.1, 2, np.nan])
    for table in (edges, edges[::-1].copy()):
        converted = convert(lambda x, table=table: jnp.digitize(x, table), target="portable")
        np.testing.assert_array_equal(converted(x), jnp.digitize(x, table))


def test_large_results_are_not_folded():
    size = folding.BUDGET_BYTES // 4

    def fun(x, size):
        return x + lax.iota(np.float32, size)[-1] + jnp.ones(size).sum()

    within = op_types(graph_of(lambda x: fun(x, size), np.float32(1)))
    beyond = op_types(graph_of(lambda x: fun(x, size + 1), np.float32(1)))
    assert set(within) == {"AddV2", "Const"}
    assert len(set(beyond)) > 2


def test_scalars_of_every_dtype_are_folded():
    for dtype in (*dtypes.BOOL, *dtypes.INTEGER, *dtypes.FLOAT, *dtypes.COMPLEX):
        with jax.enable_x64(True):
            value = np.array(1, dtype)
            result = convert(lambda v=value: lax.reduce_max(jnp.stack([v, v]).real, (0,)))()
        assert result.dtype == np.real(value).dtype


def test_loops_are_never_folded():
    def count(n):
        return lax.while_loop(lambda i: i < n, lambda i: i + 1, 0)

    for fun in (lambda: count(3), lambda: jax.jit(count)(3)):
        assert "While" in " ".join(op_types(graph_of(fun)))
        assert convert(fun)() == 3


def test_dimensions_are_never_folded():
    def fun(x):
        return x.sum() / x.shape[0] + jax.jit(lambda: jnp.float32(x.shape[0]))()

    fun_tf = tf.function(
        convert(fun, polymorphic_shapes="(b,)"),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    for size in (2, 5):
        assert fun_tf(np.ones(size, np.float32)) == 1 + size


def test_folded_results_belong_to_their_operands():
    """The same equation, in a body that is called with different constants."""

    @jax.jit
    def double(x):
        return x * 2

    assert convert(lambda: (double(1.0), double(2.0), double(1.0)))() == (2.0, 4.0, 2.0)


def test_a_loop_on_known_values_where_a_body_has_symbolic_sizes():
    def body(total, row):
        table = lax.scan(lambda a, b: (a + b, a * b), np.float32(0), np.ones(200, np.float32))[1]
        return total + row.sum() * table[:3].sum() + x_size(row), row

    def x_size(row):
        return jnp.float32(row.shape[0])

    def fun(x):
        return lax.scan(body, np.float32(0), x)[0]

    converted = convert(fun, polymorphic_shapes="(n, m)")
    graph = tf.function(converted, [tf.TensorSpec([None, None])], autograph=False)
    x = np.ones((5, 2), np.float32)
    np.testing.assert_allclose(graph(x), jax.jit(fun)(x), rtol=1e-6)
