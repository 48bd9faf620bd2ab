"""Shifts, by any amount."""

import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.formats import narrow, rounding
from lowering.ops import bitcast, cast, constant, dtypes, emit
from lowering.ops.values import tensor
from lowering.registry import Trait, rule


@rule("shift_left", keep_constants=True, traits=Trait.ELEMENTWISE)
def shift_left(ctx, x, amount):
    """By the width or more, or by a negative amount: zero."""
    x = tensor(x)
    return _with_zeros("LeftShift", x, amount, x.dtype)


@rule("shift_right_logical", keep_constants=True, traits=Trait.ELEMENTWISE)
def shift_right_logical(ctx, x, amount):
    """By the width or more, or by a negative amount: zero."""
    x = tensor(x)
    return _with_zeros("RightShift", x, amount, dtypes.unsigned(x.dtype))


@rule("shift_right_arithmetic", keep_constants=True, traits=Trait.ELEMENTWISE)
def shift_right_arithmetic(ctx, x, amount):
    """By the width or more, or by a negative amount: the sign in every bit."""
    x = tensor(x)
    dtype = dtypes.signed(x.dtype)
    if not _is_known_in_range(amount):
        last = constant(8 * x.dtype.size - 1, x.dtype)
        amount = tensor(amount)
        amount = emit("SelectV2", _in_range(amount), amount, last)
    return _shift("RightShift", x, amount, dtype)


def _with_zeros(op, x, amount, dtype):
    if _is_known_in_range(amount):
        return _shift(op, x, amount, dtype)
    amount, zero = tensor(amount), constant(0, x.dtype)
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
    unsigned = dtypes.unsigned(amount.dtype)
    return emit("Less", bitcast(amount, unsigned), constant(8 * unsigned.size, unsigned))


@rule("shift_right_logical", dtypes=dtypes.NARROW)
def shift_right_logical_narrow(ctx, x, amount):
    return rounding.from_bits(narrow.run_on_bits(ctx, x, amount), ctx.in_avals[0].dtype)


@rule("shift_right_arithmetic", dtypes=dtypes.NARROW)
def shift_right_arithmetic_narrow(ctx, x, amount):
    """The highest bit is a sign in unsigned integers too."""
    dtype = ctx.in_avals[0].dtype
    signed = np.dtype(f"int{rounding.width(dtype)}")
    x, amount = rounding.to_bits(x, dtype), rounding.to_bits(amount, dtype)
    eqn = jax_compat.replace_dtypes(ctx.eqn, lambda d: np.dtype(np.int8) if d == dtype else d)
    (result,) = ctx.equation(eqn, rounding.from_bits(x, signed), cast(amount, tf.int8))
    return rounding.narrow_to(result, dtype)
