"""Floats of eight bits or fewer are rounded, and have the bits, as in ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from lowering.formats import rounding
from lowering.ops import dtypes, kernels
from lowering.targets import ONNX, TF, TFJS, TFLITE

FLOATS = [dtype.type for dtype in dtypes.NARROW_FLOAT]


@pytest.mark.parametrize("target", [TF, TFLITE, ONNX, TFJS], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_every_float16_is_rounded_as_by_ml_dtypes(dtype, target):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = x[~np.isnan(x)].astype(np.float32)
    expected = x.astype(dtype).astype(np.float32)
    with kernels.lowering_for(target):
        actual = rounding.narrow_to(tf.constant(x), np.dtype(dtype))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_bits_and_back(dtype):
    dtype = np.dtype(dtype)
    bits = np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8)
    x = rounding.from_bits(tf.constant(bits), dtype)
    np.testing.assert_array_equal(x, bits.view(dtype).astype(np.float32))
    is_number = ~np.isnan(x)
    np.testing.assert_array_equal(rounding.to_bits(x, dtype)[is_number], bits[is_number])
