"""The softmax function along the last axis; see `passes.fusion.exact`."""

import numpy as np
import tensorflow as tf

from lowering.ops import constant, emit, integers
from lowering.registry import rule
from lowering.targets import PORTABLE, TFJS

# No finite number that is multiplied by this is below -1e20, where maxima begin
# (`tfjs.quirks.maxima_of_large_negative_numbers`).
_SCALE = 2.0**-64


@rule("softmax")
def softmax(ctx, x):
    """Several ops: TensorFlow's own Softmax gives zeros, not NaN, for the other elements of a row.

    A maximum that ignores NaN does no harm, as the sum is NaN.
    """
    last = integers([-1])
    exp = emit("Exp", emit("Sub", x, emit("Max", x, last, keep_dims=True)))
    return emit("RealDiv", exp, emit("Sum", exp, last, keep_dims=True))


@rule("softmax", target=PORTABLE)
def softmax_natural(ctx, x):
    return emit("Softmax", x)


@rule("softmax", target=TFJS)
def softmax_tfjs(ctx, x):
    return emit("Softmax", shifted(x))


def shifted(x: tf.Tensor) -> tf.Tensor:
    """`x` less about the maximum of each row, which changes no softmax.

    So a row of large negative numbers, as masks make them, has a maximum near 0.
    """
    scale, inverse = (constant(n, np.float32) for n in (_SCALE, 1 / _SCALE))
    largest = emit("Max", emit("Mul", x, scale), integers([-1]), keep_dims=True)
    return emit("Sub", x, emit("Mul", largest, inverse))
