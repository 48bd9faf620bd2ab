"""Shifts, by any amount."""

import numpy as np
import tensorflow as tf

from lowering.ops import bitcast, constant, emit
from lowering.registry import rule

_UNSIGNED = {tf.int8: tf.uint8, tf.int16: tf.uint16, tf.int32: tf.uint32, tf.int64: tf.uint64}
_SIGNED = {unsigned: signed for signed, unsigned in _UNSIGNED.items()}


@rule("shift_left", keep_constants=True)
def shift_left(ctx, x, amount):
    """By the width or more, or by a negative amount: zero."""
    x = _tensor(x)
    return _with_zeros("LeftShift", x, amount, x.dtype)


@rule("shift_right_logical", keep_constants=True)
def shift_right_logical(ctx, x, amount):
    """By the width or more, or by a negative amount: zero."""
    x = _tensor(x)
    return _with_zeros("RightShift", x, amount, _UNSIGNED.get(x.dtype, x.dtype))


@rule("shift_right_arithmetic", keep_constants=True)
def shift_right_arithmetic(ctx, x, amount):
    """By the width or more, or by a negative amount: the sign in every bit."""
    x = _tensor(x)
    dtype = _SIGNED.get(x.dtype, x.dtype)
    if not _is_known_in_range(amount):
        last = constant(8 * x.dtype.size - 1, x.dtype)
        amount = _tensor(amount)
        amount = emit("SelectV2", _in_range(amount), amount, last)
    return _shift("RightShift", x, amount, dtype)


def _with_zeros(op, x, amount, dtype):
    if _is_known_in_range(amount):
        return _shift(op, x, amount, dtype)
    amount, zero = _tensor(amount), constant(0, x.dtype)
    in_range = _in_range(amount)
    shifted = _shift(op, x, emit("SelectV2", in_range, amount, zero), dtype)
    return emit("SelectV2", in_range, shifted, zero)


def _shift(op, x, amount, dtype):
    """A shift computed in `dtype`, which decides whether the sign is shifted in."""
    if isinstance(amount, np.ndarray):
        amount = constant(amount, dtype)
    return bitcast(emit(op, bitcast(x, dtype), bitcast(amount, dtype)), x.dtype)


def _is_known_in_range(amount):
    if not isinstance(amount, np.ndarray):
        return False
    return bool(np.all((amount >= 0) & (amount < 8 * amount.dtype.itemsize)))


def _in_range(amount):
    unsigned = _UNSIGNED.get(amount.dtype, amount.dtype)
    return emit("Less", bitcast(amount, unsigned), constant(8 * unsigned.size, unsigned))


def _tensor(x):
    return constant(x) if isinstance(x, np.ndarray) else x
