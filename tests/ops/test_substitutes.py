"""Ops that a runtime lacks, made of others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import export

X = np.array([0, -1, 7, -8, 2**31 - 1, -(2**31), 123456, -99999], np.int32)


@pytest.mark.parametrize("mask", [0, 1, 7, 2**16 - 1, 2**30 - 1, 2**31 - 1, -1, 6])
def test_lower_bits_are_a_remainder_on_tflite(mask):
    """TF Lite has no bitwise "and"."""
    model = export.to_tflite(lambda x: x & mask, (X,))
    is_remainder = mask in (0, 1, 7, 2**16 - 1, 2**30 - 1)
    assert (dict(model.ops) == {"FLOOR_MOD": 1}) is is_remainder


@pytest.mark.parametrize("to", ["tflite", "onnx"])
@pytest.mark.parametrize("power", [1, 2, 2**16, 2**31])
def test_quotients_and_remainders_of_uint32_by_powers_of_two(power, to):
    words = X.view(np.uint32)
    exporter = export.to_tflite if to == "tflite" else export.to_onnx
    model = exporter(lambda x: (x // jnp.uint32(power), x % jnp.uint32(power)), (words,))
    assert not {"DIV", "Div", "FLOOR_DIV"} & set(model.ops) or power == 2**31


@pytest.mark.parametrize("target", ["tflite", "onnx", "tfjs"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_of_each_element_of_a_batch(dtype, target):
    """TF.js has no gather of batches, and integers of 32 bits alone."""
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    index = np.array([[3, -1, 0], [1, 2, 9]], dtype)

    def fun(x, index):
        return jax.vmap(lambda x, i: jnp.take(x, i, axis=0, mode="clip"))(x, index)

    with jax.enable_x64(True):
        converted = lowering.convert(fun, target=target)
        function = tf.function(converted, autograph=False).get_concrete_function(x, index)
        np.testing.assert_array_equal(function(x, index), fun(x, index))
