"""Comparisons that a converter decides by an op that the runtime lacks.

See `quirks.zeros_like_bools`.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from lowering import targets
from lowering.ops import values
from lowering.ops.constants import constant
from lowering.targets.tflite import quirks

# Comparisons of a bool (0 or 1) with 0 that are always true or never, and the comparison with -1
# that has the same result: for a 0 that is the first operand, and for one that is the second.
_INSTEAD = (
    {"LessEqual": "Less", "Greater": "GreaterEqual"},
    {"GreaterEqual": "Greater", "Less": "LessEqual"},
)
# The converter moves comparisons past ops that move elements.
_MOVES = frozenset({"BroadcastTo", "ExpandDims", "Reshape", "Squeeze", "Transpose"})


def place_of_zero(op: str, operands: tuple[Any, ...]) -> int | None:
    """Which operand is the 0 in such a comparison, with a bool that is cast; None for other ops."""
    for place, ops in enumerate(_INSTEAD):
        if (
            op in ops
            and targets.current().has(quirks.zeros_like_bools)
            and _is_zero(operands[place])
            and _is_of_bool(operands[1 - place])
        ):
            return place
    return None


def with_other_number(
    op: str, operands: tuple[Any, ...], place: int
) -> tuple[str, tuple[Any, ...]]:
    """The comparison with -1 that has the same results, and its operands."""
    zero, changed = operands[place], list(operands)
    # It keeps its shape, to which the other operand may be broadcast.
    changed[place] = constant(np.full(zero.shape.as_list(), -1), zero.dtype)
    return _INSTEAD[place][op], tuple(changed)


def _is_zero(x: tf.Tensor) -> bool:
    value = None if x.dtype.is_unsigned else tf.get_static_value(x)
    return value is not None and not np.any(value)


def _is_of_bool(x: tf.Tensor) -> bool:
    source = values.source(x)
    while source is not None and source.type in _MOVES:
        source = values.source(source.inputs[0])
    return source is not None and source.type == "Cast" and source.inputs[0].dtype == tf.bool
