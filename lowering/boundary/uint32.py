"""Arguments and results of uint32 of programs that split them; see `arrays.uint32_parts`.

Outside of these programs they are int32. Integers of more than 24 bits are split and joined by two
ops of sparse arrays, which all backends of TF.js compute outside of textures.
"""

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from lowering.arrays.uint32_parts import BASE
from lowering.ops import constant, emit, integers, modes, values
from lowering.targets import Mode

# The first op makes positions in an array of those in another; both have fewer elements than int32
# has positive numbers, but no position is checked.
_SPLIT_SHAPE = (BASE // 2 - 1, BASE)


def split(x: tf.Tensor) -> Sequence[tf.Tensor]:
    """The upper and the lower 16 bits of an argument, in int32."""
    size = constant(BASE, np.int32)
    if modes.current() is Mode.EAGER or 0 in x.shape:
        return parts_of_int32(x)
    positions, _ = tf.raw_ops.SparseReshape(
        input_indices=tf.cast(tf.reshape(x, integers([-1, 1])), tf.int64),
        input_shape=constant(np.array([math.prod(_SPLIT_SHAPE)], np.int64)),
        new_shape=constant(np.array(_SPLIT_SHAPE, np.int64)),
    )
    first, second = (
        tf.reshape(part, _shape_of(x))
        for part in tf.unstack(tf.cast(positions, tf.int32), 2, axis=-1)
    )
    # Some backends round towards zero, others take the integer for one without a sign.
    borrow = tf.raw_ops.FloorDiv(x=second, y=size)
    high = emit("FloorMod", emit("AddV2", first, borrow), size)
    return high, emit("FloorMod", second, size)


def parts_of_int32(x: tf.Tensor) -> Sequence[tf.Tensor]:
    """The parts of the bits of int32, exact for integers of up to 24 bits."""
    size = constant(BASE, np.int32)
    return emit("FloorMod", emit("FloorDiv", x, size), size), emit("FloorMod", x, size)


def joined(high: tf.Tensor, low: tf.Tensor) -> tf.Tensor:
    """A result of a program in int32, from its parts. The summands are exact as floats."""
    known = [tf.get_static_value(part) for part in (high, low)]
    if all(part is not None for part in known):
        return constant((known[0].astype(np.int64) * BASE + known[1]).astype(np.int32))
    if (bits := _split_from(high, low)) is not None:
        return bits
    half, size = (constant(n, np.int32) for n in (BASE // 2, BASE))
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


def _split_from(high: tf.Tensor, low: tf.Tensor) -> tf.Tensor | None:
    """The int32 that these parts were split from, which is more exact than joining them again."""
    bits = _operand("FloorMod", low)
    quotient = _operand("FloorMod", high)
    is_same = bits is not None and quotient is not None and _operand("FloorDiv", quotient) is bits
    return bits if is_same else None


def _operand(op: str, x: tf.Tensor) -> tf.Tensor | None:
    """The operand of an op by 2^16 that has made a tensor; None if another op has made it."""
    made = values.source(x)
    if made is None or made.type != op:
        return None
    operand, divisor = made.inputs
    return operand if np.array_equal(tf.get_static_value(divisor), BASE) else None


def _shape_of(x):
    return integers(x.shape.as_list()) if x.shape.is_fully_defined() else tf.shape(x)
