"""Newer opsets have more ops; programs that need these have other ones in older opsets."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export
from lowering.errors import UnsupportedError
from lowering.ops import dtypes

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx_ir")
pytest.importorskip("onnxruntime")

X = np.float32([[1.5, -0.0, np.inf], [3e-3, -7e8, 65504]])
INTEGERS = np.array([[0, -1, 5], [2**31 - 1, -(2**31), 123456789]], np.int32)


def bits(x):
    return lax.bitcast_convert_type(x, np.int32), lax.bitcast_convert_type(x, np.uint32)


def of_bits(x):
    return lax.bitcast_convert_type(abs(x) % (1 << 30), np.float32)


def bitwise(x):
    return x & 12345, x | 77, x ^ (x >> 3), ~x


def uniform(words):
    return jax.random.uniform(jax.random.wrap_key_data(words), (5,))


PROGRAMS = {
    "bits": (bits, X),
    "of bits": (of_bits, INTEGERS),
    "bitwise": (bitwise, INTEGERS),
    "uniform": (uniform, np.uint32([3, 4])),
}


def kinds(model):
    graph = onnx.load_from_string(model).graph
    return collections.Counter(node.op_type for node in graph.node)


@pytest.mark.parametrize("opset", [17, 18, 25, 26, None])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits(name, opset):
    fun, x = PROGRAMS[name]
    found = kinds(export.to_onnx(fun, (x,), opset=opset))
    assert (found["BitCast"] > 0) == (name != "bitwise" and opset in (26, None))
    assert (found["BitwiseXor"] > 0) == (name in ("bitwise", "uniform") and opset != 17)


@jax.enable_x64(True)
def test_bits_of_64_bits():
    x = np.array([1.5, -0.0, np.inf, 1e-310, -1e300])
    twice = export.to_onnx(lambda x: lax.bitcast_convert_type(x, np.int64) + 1, (x,))
    assert kinds(twice) == {"BitCast": 1, "Add": 1}
    export.to_onnx(lambda x: lax.bitcast_convert_type(x, np.uint64) >> 1, (x,))
    export.to_onnx(lambda x: jax.numpy.copysign(x, -x[::-1]), (x,))
    export.to_onnx(lambda x: jax.random.uniform(jax.random.wrap_key_data(x)), (np.uint32([1, 2]),))
    with pytest.raises(
        UnsupportedError,
        match="Bitcast of float64, which onnx has since version 26 of its ops; this is 25",
    ):
        export.to_onnx(lambda x: lax.bitcast_convert_type(x, np.int64), (x,), opset=25)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_greatest_of_windows_has_no_casts(dtype):
    def pooled(x):
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    with jax.enable_x64(dtype == np.float64):
        x = np.arange(32.0, dtype=dtype).reshape(1, 4, 4, 2)
        assert kinds(export.to_onnx(pooled, (x,))) == {"Transpose": 2, "MaxPool": 1}


@jax.enable_x64(True)
@pytest.mark.parametrize("dtype", dtypes.INTEGER)
def test_integers_before_the_bitwise_ops(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 85, 3, 100], dtype)

    def fun(x, y):
        bits = (
            x & y,
            x | y,
            x ^ y,
            ~x,
            x & dtype(3),
            lax.reduce_and(x, (0,)),
            lax.reduce_xor(x, (0,)),
        )
        counts = lax.clz(x), lax.population_count(x)
        return bits, counts, jnp.sort(x), x << dtype(1), x >> dtype(2), jnp.argmax(x)

    export.to_onnx(fun, (x, x[::-1].copy()), opset=17)
