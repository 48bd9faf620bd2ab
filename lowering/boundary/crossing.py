"""Words of 32 bits that cross the boundary of a program in halves: see `arrays.halves`.

Outside they are int32. Integers of more than 24 bits are taken apart and joined by two ops of
sparse arrays, which all backends of TF.js compute outside of textures.
"""

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from lowering.arrays.halves import SIZE
from lowering.ops import constant, emit, integers, modes, values
from lowering.targets import Mode

# The first op makes positions in an array of those in another; both have fewer elements than int32
# has positive numbers, but no position is checked.
_APART = (SIZE // 2 - 1, SIZE)


def apart(x: tf.Tensor) -> Sequence[tf.Tensor]:
    """The upper and the lower half of words that a program is given, in int32."""
    size = constant(SIZE, np.int32)
    if modes.current() is Mode.EAGER or 0 in x.shape:
        return halves_of(x)
    positions, _ = tf.raw_ops.SparseReshape(
        input_indices=tf.cast(tf.reshape(x, integers([-1, 1])), tf.int64),
        input_shape=constant(np.array([math.prod(_APART)], np.int64)),
        new_shape=constant(np.array(_APART, np.int64)),
    )
    first, second = (
        tf.reshape(part, _shape_of(x))
        for part in tf.unstack(tf.cast(positions, tf.int32), 2, axis=-1)
    )
    # Some backends round towards zero, others take the integer for one without a sign.
    borrow = tf.raw_ops.FloorDiv(x=second, y=size)
    high = emit("FloorMod", emit("AddV2", first, borrow), size)
    return high, emit("FloorMod", second, size)


def halves_of(x: tf.Tensor) -> Sequence[tf.Tensor]:
    """The halves of the bits of int32, which are exact for integers of up to 24 bits."""
    size = constant(SIZE, np.int32)
    return emit("FloorMod", emit("FloorDiv", x, size), size), emit("FloorMod", x, size)


def joined(high: tf.Tensor, low: tf.Tensor) -> tf.Tensor:
    """Words as a program returns them, in int32. The summands are exact as floats."""
    known = [tf.get_static_value(half) for half in (high, low)]
    if all(half is not None for half in known):
        return constant((known[0].astype(np.int64) * SIZE + known[1]).astype(np.int32))
    if (bits := _made_of(high, low)) is not None:
        return bits
    half, size = (constant(n, np.int32) for n in (SIZE // 2, SIZE))
    signed = emit("Sub", emit("FloorMod", emit("AddV2", high, half), size), half)
    upper = emit("Mul", signed, size)
    if modes.current() is Mode.EAGER:
        return emit("AddV2", upper, low)
    result = tf.raw_ops.SparseSegmentSum(
        data=tf.reshape(tf.raw_ops.Pack(values=[upper, low], axis=0), integers([2, -1])),
        indices=integers([0, 1]),
        segment_ids=integers([0, 0]),
    )
    return tf.reshape(result, _shape_of(low))


def _made_of(high: tf.Tensor, low: tf.Tensor) -> tf.Tensor | None:
    """The int32 that halves are those of, if they are: taken apart and joined it is less exact."""
    bits = _operand("FloorMod", low)
    quotient = _operand("FloorMod", high)
    is_same = bits is not None and quotient is not None and _operand("FloorDiv", quotient) is bits
    return bits if is_same else None


def _operand(op: str, x: tf.Tensor) -> tf.Tensor | None:
    """What an op with the size of halves made a tensor of; None if it is not made so."""
    made = values.source(x)
    if made is None or made.type != op:
        return None
    operand, divisor = made.inputs
    return operand if np.array_equal(tf.get_static_value(divisor), SIZE) else None


def _shape_of(x):
    return integers(x.shape.as_list()) if x.shape.is_fully_defined() else tf.shape(x)
