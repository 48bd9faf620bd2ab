"""Maximum and minimum that propagate NaN and order zeros by their signs, in every mode.

Compiled on the CPU, TensorFlow's Maximum and Minimum return the first operand where the second is
NaN; elsewhere they return NaN. Of a positive and a negative zero they return either: vectorized
kernels return the second operand, others the first, and XLA exchanges the operands.
"""

import numpy as np
import tensorflow as tf

from lowering.ops import bitcast, dtypes, emit, modes
from lowering.ops.constants import constant
from lowering.targets import Mode

_KNOWN = np.ndarray | np.generic

# The comparison of an operand with a known zero that holds where the zero is the result; by the op,
# and by whether the zero is negative.
_REPLACED = {
    "Maximum": {False: "LessEqual", True: "Less"},
    "Minimum": {False: "Greater", True: "GreaterEqual"},
}

# How to combine the bits of two zeros. The maximum has a sign only if both have, the minimum if one
# has.
_OF_SIGNS = {"Maximum": "BitwiseAnd", "Minimum": "BitwiseOr"}


def maximum(x: tf.Tensor | np.ndarray, y: tf.Tensor | np.ndarray) -> tf.Tensor:
    """The greater of two real numbers, NaN if either is NaN; operands broadcast.

    For an operand that is known (an array) no op tests for NaN, and ops order zeros only if it has
    any.
    """
    return _extremum("Maximum", x, y)


def minimum(x: tf.Tensor | np.ndarray, y: tf.Tensor | np.ndarray) -> tf.Tensor:
    """The lesser of two real numbers, NaN if either is NaN; as `maximum`."""
    return _extremum("Minimum", x, y)


def _extremum(op, x, y):
    if not isinstance(y, _KNOWN):
        x, y = (y, x) if isinstance(x, _KNOWN) else (x, y)
    if isinstance(y, _KNOWN):
        return _of_known(op, constant(x) if isinstance(x, _KNOWN) else x, np.asarray(y))
    result = emit(op, x, y)
    if not x.dtype.is_floating:
        return result
    return _with_zeros(op, x, y, emit("SelectV2", emit("NotEqual", y, y), y, result))


def _of_known(op, x, y):
    if not x.dtype.is_floating:
        return emit(op, x, constant(y))
    if y.ndim == 0 and y == (-np.inf if op == "Maximum" else np.inf):
        return x
    nan = y != y
    number = np.where(nan, np.ones((), y.dtype), y)
    known, signs = constant(number), np.signbit(number[number == 0])
    if op == "Maximum" and not np.any(np.signbit(number)) and modes.current() is not Mode.COMPILED:
        # The result may be -0 where it has to be 0, which Abs corrects. XLA would remove the Abs:
        # the maximum with a number that is not negative is not negative either.
        result = emit("Maximum", x, known)
        result = emit("Abs", result) if signs.size else result
    elif signs.size and (np.all(signs) or not np.any(signs)):
        replaced = emit(_REPLACED[op][bool(np.all(signs))], x, known)
        result = emit("SelectV2", replaced, known, x)
    else:
        result = emit(op, x, known)
        result = _with_zeros(op, x, known, result) if signs.size else result
    return emit("SelectV2", constant(nan), constant(y), result) if np.any(nan) else result


def _with_zeros(op, x, y, result):
    """`result`, but with the right zero where the operands are zeros of different signs."""
    integer = dtypes.signed(x.dtype)
    both = emit(_OF_SIGNS[op], bitcast(x, integer), bitcast(y, integer))
    return emit("SelectV2", emit("Equal", x, y), bitcast(both, x.dtype), result)
