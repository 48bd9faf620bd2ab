"""Constants whose shape the converter to TF Lite would mistake, in another shape.

See `quirks.numbers_as_biases`, `quirks.rows_added_to_columns` and
`quirks.activations_of_fewer_axes`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from lowering import targets
from lowering.ops import memo
from lowering.ops.constants import constant, integers, is_weight
from lowering.targets import Quirk
from lowering.targets.tflite import quirks

_TRANSPOSED = "Conv2DBackpropInput"
# The ops of which the converter makes one with the transposed convolution before them, and those
# that it moves sums past.
_JOINED = frozenset("AddV2 ExpandDims Identity Mul RealDiv Reshape Squeeze Sub Transpose".split())


class _Mistake(NamedTuple):
    """A mistake of the converter about an op on an array and a constant.

    Attributes:
      quirk: the mistake.
      ops: the ops.
      is_mistaken: takes the array and the constant; whether the converter mistakes them.
      instead: takes the array and the constant; returns those that it does not mistake.
    """

    quirk: Quirk
    ops: frozenset[str]
    is_mistaken: Callable[[tf.Tensor, tf.Tensor], bool]
    instead: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


def with_other_shapes(op: str, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of an op, in other shapes if the converter would mistake a constant."""
    possible = [m for m in _MISTAKES if op in m.ops and targets.current().has(m.quirk)]
    if not possible:
        return operands
    first, second = operands
    if is_weight(first) == is_weight(second):
        return operands
    is_swapped = is_weight(first)
    x, known = (second, first) if is_swapped else (first, second)
    for mistake in possible:
        if mistake.is_mistaken(x, known):
            x, known = mistake.instead(x, known)
            return (known, x) if is_swapped else (x, known)
    return operands


def _is_number_of_transposed(x, known):
    """Whether a number is added to what a transposed convolution computes."""
    if known.shape.num_elements() != 1 or not x.shape.rank or not tf.is_symbolic_tensor(x):
        return False
    if x.shape[-1] in (None, 1) or not memo.has_op(x.graph, _TRANSPOSED):
        return False
    while tf.is_symbolic_tensor(x) and x.op.type in _JOINED:
        x = next((y for y in x.op.inputs if not is_weight(y)), None)
    return tf.is_symbolic_tensor(x) and x.op.type == _TRANSPOSED


def _number_of_each_feature(x, known):
    return x, _broadcast(known, [x.shape[-1]])


def _is_row_of_column(x, known):
    """Whether a vector is added to arrays whose last axis has size one."""
    if known.shape.rank != 1 or known.shape[0] == 1:
        return False
    return (x.shape.rank or 0) > 1 and x.shape[-1] == 1


def _as_matrix(x, known):
    return x, _broadcast(known, [1, *known.shape])


def _broadcast(known, shape):
    """A weight broadcast to a shape; if its value is known, a constant."""
    value = tf.get_static_value(known)
    if value is None:
        return tf.broadcast_to(tf.reshape(known, [-1]), shape)
    return constant(np.broadcast_to(value.reshape(-1), shape), known.dtype)


def _is_bound_of_fewer_axes(x, known):
    """Whether an array is broadcast to the shape of a bound that repeats one number."""
    if not x.shape.is_fully_defined() or not known.shape.rank:
        return False
    if tf.broadcast_static_shape(x.shape, known.shape) == x.shape:
        return False
    value = tf.get_static_value(known)
    return value is not None and value.size > 0 and bool(np.all(value == value.flat[0]))


def _broadcast_to_bound(x, known):
    shape = tf.broadcast_static_shape(x.shape, known.shape)
    number = tf.get_static_value(known).flat[0]
    return tf.broadcast_to(x, integers(shape.as_list())), constant(number, known.dtype)


_SUMS = frozenset({"AddV2", "Sub"})
_BOUNDS = frozenset({"Maximum", "Minimum"})
_MISTAKES = (
    _Mistake(quirks.numbers_as_biases, _SUMS, _is_number_of_transposed, _number_of_each_feature),
    _Mistake(quirks.rows_added_to_columns, _SUMS, _is_row_of_column, _as_matrix),
    _Mistake(
        quirks.activations_of_fewer_axes, _BOUNDS, _is_bound_of_fewer_axes, _broadcast_to_bound
    ),
)
