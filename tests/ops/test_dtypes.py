"""Dtypes of JAX as dtypes of TensorFlow."""

import jax
import numpy as np
import tensorflow as tf

from lowering.ops import dtypes


def test_dtypes_round_trip():
    for dtype in (*dtypes.BOOL, *dtypes.INTEGER, *dtypes.FLOAT, *dtypes.COMPLEX):
        assert dtypes.to_tf(np.dtype(dtype)).as_numpy_dtype == dtype
    assert dtypes.to_tf(dtypes.FLOAT0) == tf.bool
    assert dtypes.to_tf(jax.random.key(0).dtype) == tf.uint32


def test_wider_dtypes_hold_every_value():
    for dtype in tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32:
        wider = dtypes.wider(dtype)
        assert dtype == tf.bool or (wider.min <= dtype.min and dtype.max <= wider.max)
    assert dtypes.wider(tf.float64) is None and dtypes.wider(tf.uint64) is None


def test_carriers_have_the_same_width():
    for dtype in tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.float16, tf.bfloat16:
        assert dtypes.carrier(dtype).size == dtype.size
    assert dtypes.carrier(tf.float32) is None
