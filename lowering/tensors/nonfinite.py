"""Matrices with infinities or NaNs, which TensorFlow's decompositions refuse."""

import tensorflow as tf

from lowering.ops import constant, emit


def where_finite(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Which matrices are finite, as a bool [..., 1, 1], and `x` with zeros for the others."""
    finite = tf.math.is_finite(tf.math.real(x))
    if x.dtype.is_complex:
        finite = finite & tf.math.is_finite(tf.math.imag(x))
    finite = tf.reduce_all(finite, axis=[-2, -1], keepdims=True)
    return finite, emit("SelectV2", finite, x, constant(0, x.dtype))


def nan_unless(succeeded: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Matrices or vectors, with NaN for those that did not succeed; `succeeded` is [..., 1, 1]."""
    if x.shape.rank < succeeded.shape.rank:
        succeeded = tf.squeeze(succeeded, -1)
    nan = complex(float("nan"), float("nan")) if x.dtype.is_complex else float("nan")
    return emit("SelectV2", succeeded, x, constant(nan, x.dtype))
