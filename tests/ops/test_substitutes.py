"""Ops that a runtime lacks, made of others."""

import jax.numpy as jnp
import numpy as np
import pytest

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
