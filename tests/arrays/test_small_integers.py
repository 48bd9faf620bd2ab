"""Contractions of small integers by float32, which JAX's own contractions of integers confirm."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering
from lowering.arrays import small_integers
from tests.helpers import graph_of, op_counts


def _array(rng, dtype, *shape, extreme):
    info = jnp.iinfo(dtype)
    if extreme:
        return jnp.full(shape, info.min if info.min else info.max, dtype)
    return jnp.asarray(rng.integers(int(info.min), int(info.max) + 1, shape), dtype)


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("out", ["int32", "int8", "uint8", "int16"])
@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")])
@pytest.mark.parametrize("terms", [0, 1, 256, 1024, 1025, 5000])
def test_products_of_matrices(terms, dtypes, out, extreme):
    rng = np.random.default_rng(0)
    lhs = _array(rng, dtypes[0], 3, terms, extreme=extreme)
    rhs = _array(rng, dtypes[1], terms, 2, extreme=extreme)
    found = small_integers.contraction(
        jnp.matmul, lhs, rhs, axes=[(1, 0)], terms=terms, out=np.dtype(out)
    )
    expected = np.asarray(lhs, np.int64) @ np.asarray(rhs, np.int64)
    assert found.dtype == out
    np.testing.assert_array_equal(found, expected.astype(out))


def test_what_is_left_to_integers():
    def contracted(lhs, rhs, terms=4, out=np.int32):
        return small_integers.contraction(
            jnp.matmul, lhs, rhs, axes=[(1, 0)], terms=terms, out=np.dtype(out)
        )

    x, y = jnp.ones((2, 4), np.int8), jnp.ones((4, 2), np.int8)
    assert contracted(x, y) is not None
    assert contracted(x.astype(np.int16), y) is None
    assert contracted(x, y, out=np.float32) is None
    assert contracted(x, y, terms="n") is None
    many = 1 << 17
    assert contracted(jnp.ones((1, many), np.int8), jnp.ones((many, 1), np.int8), many) is None


_CONVOLUTIONS = {
    "plain": ((2, 8, 8, 4), (3, 3, 4, 6), {}),
    "groups": ((2, 8, 8, 4), (3, 3, 2, 6), {"feature_group_count": 2}),
    "depthwise": ((2, 8, 8, 4), (3, 3, 1, 8), {"feature_group_count": 4}),
    "batch_groups": ((4, 8, 8, 3), (3, 3, 3, 6), {"batch_group_count": 2}),
    "many_terms": ((1, 5, 5, 200), (3, 3, 200, 2), {}),
    "many_terms_in_groups": ((1, 5, 5, 400), (3, 3, 200, 4), {"feature_group_count": 2}),
    "strides_and_dilations": (
        (2, 9, 9, 3),
        (3, 3, 3, 4),
        {"window_strides": (2, 2), "padding": ((1, 2), (0, 1)), "rhs_dilation": (2, 1)},
    ),
}


@pytest.mark.parametrize("shape", [None, "b, ..."])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("target", ["tflite", "onnx", "tfjs"])
@pytest.mark.parametrize("case", _CONVOLUTIONS)
def test_convolutions(case, target, dtype, shape):
    lhs_shape, rhs_shape, options = _CONVOLUTIONS[case]
    if shape and "batch_group_count" in options:
        shape = "2*b, ..."
    rng = np.random.default_rng(0)
    lhs, rhs = (
        _array(rng, dtype, *sizes, extreme=case.startswith("many"))
        for sizes in (lhs_shape, rhs_shape)
    )
    options = {"window_strides": (1, 1), "padding": "SAME", **options}

    def fun(lhs):
        return lax.conv_general_dilated(
            lhs,
            rhs,
            **options,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            preferred_element_type=np.int32,
        )

    converted = lowering.convert(
        fun, target=target, with_gradient=False, polymorphic_shapes=[shape]
    )
    np.testing.assert_array_equal(converted(np.asarray(lhs)), fun(lhs))


@pytest.mark.parametrize("target", ["tflite", "onnx", "tfjs"])
def test_runtimes_multiply_floats(target):
    x, y = np.ones((2, 1500), np.int8), np.ones((1500, 3), np.int8)

    def fun(x, y):
        return lax.dot(x, y, preferred_element_type=np.int32)

    graph = graph_of(fun, x, y, target=target)
    products = [op for op in graph.get_operations() if op.type == "MatMul"]
    assert [op.outputs[0].dtype.name for op in products] == ["float32"] * 2
    assert op_counts(graph)["Minimum"] == 0
