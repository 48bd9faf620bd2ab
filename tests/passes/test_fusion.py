"""Groups of equations become one op, and their results stay what JAX computes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from tests.helpers import MODES, graph_of, in_mode, op_counts

EXTREME = np.array(
    [[1, 2, 3, -1], [np.nan, 1, 0, 2], [np.inf, 1, 0, 2], [-np.inf, 0, 1, 2], [-np.inf] * 4],
    np.float32,
)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def batch_norm(x, w, mean, variance, scale, offset):
    x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return (x - mean) * (lax.rsqrt(variance + 1e-5) * scale) + offset


def attention(q, k, v):
    weights = softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def gates(x, y):
    return [a + b for a, b in zip(jnp.split(x, 4, -1), jnp.split(y, 4, -1), strict=True)]


IMAGE = (normal(2, 6, 6, 3), normal(3, 3, 3, 5), *(abs(normal(1, 1, 1, 5)) for _ in range(4)))

CASES = {
    "softmax": (softmax, (normal(3, 4, 5),), {"Max": 1, "Sub": 1, "IsNan": 0, "Reshape": 0}),
    "softmax_extreme": (softmax, (EXTREME,), {"IsNan": 0}),
    "softmax_double_use": (lambda x: (softmax(x), jnp.sin(x)), (normal(3, 4),), {"IsNan": 0}),
    "softmax_of_columns": (
        # This subtracts the maxima of rows from columns, and thus is no softmax.
        lambda x: jnp.exp(x - x.max(-1)) / jnp.exp(x - x.max(-1)).sum(-1),
        (normal(4, 4),),
        {"IsNan": 2},
    ),
    "softmax_of_columns_only_sums": (
        lambda x: (e := jnp.exp(x - x.max(-1, keepdims=True))) / e.sum(-1),
        (normal(4, 4),),
        {"IsNan": 1},
    ),
    "softmax_low_precision": (softmax, (normal(3, 4).astype(np.float16),), {"IsNan": 1}),
    "softmax_first_axis": (lambda x: jax.nn.softmax(x, axis=0), (normal(3, 4),), {"IsNan": 1}),
    "batch_norm": (batch_norm, IMAGE, {"FusedBatchNormV3": 1, "Rsqrt": 0}),
    "batch_norm_by_a_number": (
        lambda x, mean: (x - mean) * (lax.rsqrt(mean + 1e-5) * 2) + mean,
        (IMAGE[0], IMAGE[2][..., :3]),
        {"Rsqrt": 1},
    ),
    "batch_norm_alone": (
        lambda x, *statistics: batch_norm(x, np.eye(3, dtype=np.float32)[None, None], *statistics),
        (IMAGE[0], *(s[..., :3] for s in IMAGE[2:])),
        {"FusedBatchNormV3": 1},
    ),
    "attention": (
        attention,
        [normal(2, 7, 3, 8)] * 3,
        {"BatchMatMulV3": 2, "Einsum": 4, "Transpose": 0},
    ),
    "attention_to_many": (
        attention,
        [normal(2, 96, 8, 16)] * 3,
        {"BatchMatMulV2": 2, "Einsum": 4, "Transpose": 0},
    ),
    "transposed_product": (
        lambda x, y: (x @ y).T,
        (normal(3, 4), normal(4, 5)),
        {"MatMul": 1, "Transpose": 0},
    ),
    "gates": (gates, (normal(2, 8), normal(3, 8)[:2]), {"Split": 1, "AddV2": 1}),
    "gates_computed": (
        lambda x, y: gates(x, jnp.sin(y)),
        (normal(2, 8), normal(2, 8)),
        {"Split": 1, "AddV2": 1},
    ),
    "gates_one_after_the_other": (
        lambda x, y: [
            a + b for a, b in zip(jnp.split(jnp.sin(x), 2), lax.split(jnp.cos(y), (2, 2)))
        ],
        (normal(4, 3), normal(4, 3)),
        {"Split": 1, "AddV2": 1},
    ),
    "gates_crossed": (
        lambda x, y: [a + b for a, b in zip(jnp.split(x, 2), jnp.split(y, 2)[::-1], strict=True)],
        (normal(4, 3), normal(4, 3)),
        {"Split": 2, "AddV2": 2},
    ),
    "gates_shared": (
        lambda x: [a + b for a, b in zip(jnp.split(x, 2), jnp.split(x, 2), strict=True)],
        (normal(4, 3),),
        {"Split": 1},
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_numbers_are_those_of_jax(case, mode):
    fun, args, _ = CASES[case]
    converted = in_mode(lowering.convert(fun, target="tf"), mode)
    expected, actual = jax.jit(fun)(*args), converted(*map(tf.constant, args))
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(
            y.numpy(), x, rtol=2e-3 if x.dtype == np.float16 else 1e-5, atol=1e-6
        ),
        expected,
        actual,
    )


@pytest.mark.parametrize("case", CASES)
def test_ops(case):
    fun, args, wanted = CASES[case]
    counts = op_counts(graph_of(fun, *args, target="tf", with_gradient=True))
    assert {op: counts[op] for op in wanted} == wanted


def test_symbolic_dimensions():
    converted = lowering.convert(
        attention, polymorphic_shapes=["(b - 1, n, 3, 4)"] * 3, target="tf"
    )
    for shape in ((2, 5, 3, 4), (1, 1, 3, 4), (0, 2, 3, 4)):
        q, k, v = normal(*shape), normal(*shape) * 2, normal(*shape) + 1
        np.testing.assert_allclose(converted(q, k, v), attention(q, k, v), rtol=1e-5, atol=1e-6)
