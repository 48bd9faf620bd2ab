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
    x = tensor(x)
    return _with_zeros("LeftShift", x, amount, x.dtype)


@rule("shift_right_logical", keep_constants=True, traits=Trait.ELEMENTWISE)
def shift_right_logical(ctx, x, amount):
    x = tensor(x)
    return _with_zeros("RightShift", x, amount, dtypes.unsigned(x.dtype))


@rule("shift_right_arithmetic", keep_constants=True, traits=Trait.ELEMENTWISE)
def shift_right_arithmetic(ctx, x, amount):
    """For an amount that is out of range, every bit of the result is the sign."""
    x = tensor(x)
    if not _is_known_in_range(amount):
        last, amount = constant(8 * x.dtype.size - 1, x.dtype), tensor(amount)
        amount = emit("SelectV2", _in_range(amount), amount, last)
    return _shift("RightShift", x, amount, dtypes.signed(x.dtype))


def _with_zeros(op, x, amount, dtype):
    """A shift whose result is zero for an amount that is out of range."""
    if _is_known_in_range(amount):
        return _shift(op, x, amount, dtype)
    amount, zero = tensor(amount), constant(0, x.dtype)
    in_range = _in_range(amount)
    shifted = _shift(op, x, emit("SelectV2", in_range, amount, zero), dtype)
    return emit("SelectV2", in_range, shifted, zero)


def _shift(op, x, amount, dtype):
    """A shift in `dtype`: if that is signed, a shift to the right repeats the sign."""
    if isinstance(amount, np.ndarray):
        amount = constant(amount, dtype)
    return bitcast(emit(op, bitcast(x, dtype), bitcast(amount, dtype)), x.dtype)


def _is_known_in_range(amount):
    return isinstance(amount, np.ndarray) and np.all(
        (amount >= 0) & (amount < 8 * amount.dtype.itemsize)
    )


def _in_range(amount):
    unsigned = dtypes.unsigned(amount.dtype)
    return emit("Less", bitcast(amount, unsigned), constant(8 * unsigned.size, unsigned))


@rule("shift_right_logical", dtypes=dtypes.NARROW)
def shift_right_logical_narrow(ctx, x, amount):
    return rounding.from_bits(narrow.run_on_bits(ctx, x, amount), ctx.in_avals[0].dtype)


@rule("shift_right_arithmetic", dtypes=dtypes.NARROW)
def shift_right_arithmetic_narrow(ctx, x, amount):
    """Unsigned integers are shifted as if they were signed, too."""
    dtype = ctx.in_avals[0].dtype
    signed = np.dtype(f"int{rounding.width(dtype)}")
    x, amount = rounding.to_bits(x, dtype), rounding.to_bits(amount, dtype)
    eqn = jax_compat.replace_dtypes(ctx.eqn, lambda d: np.dtype(np.int8) if d == dtype else d)
    (result,) = ctx.equation(eqn, rounding.from_bits(x, signed), cast(amount, tf.int8))
    return rounding.narrow_to(result, dtype)
