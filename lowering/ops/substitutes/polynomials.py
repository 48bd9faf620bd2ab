"""Polynomials, and the bounds of what they are good for."""

from typing import Any

import tensorflow as tf

from lowering.ops.constants import constant
from lowering.ops.emission import emit


def horner(coefficients: Any, x: tf.Tensor) -> tf.Tensor:
    """The value of a polynomial at `x`, by the coefficients of its powers, the highest first."""
    value = constant(coefficients[0], x.dtype)
    for coefficient in coefficients[1:]:
        value = emit("AddV2", emit("Mul", value, x), constant(coefficient, x.dtype))
    return value


def within(x: tf.Tensor, limit: float) -> tf.Tensor:
    """`x` where its size is at most a limit, else the limit with its sign."""
    return emit("ClipByValue", x, constant(-limit, x.dtype), constant(limit, x.dtype))
