"""Shifts, by any amount."""

import functools

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import narrow_numbers
from lowering.arrays import split_arithmetic as arithmetic
from lowering.narrow_formats import NARROW, SHORT, SIGNED, width
from lowering.ops import bitcast, constant, dtypes, emit, kernels
from lowering.ops.values import tensor
from lowering.registry import Trait, decomposition, on_promoted, rule
from lowering.rules import uint32_parts
from lowering.targets import CONSUMER, TFJS


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
    """An amount that is out of range makes every bit of the result the sign."""
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


# The factors by which shifts to the left by 0 to 31 multiply.
_POWERS = (np.uint32(1) << np.arange(32, dtype=np.uint32)).astype(np.int32)
# What a logical shift by 0 to 31 adds to the arithmetic shift of a negative number.
_SIGNS = np.append(np.int32(0), _POWERS[:0:-1])


@rule("shift_left", target=CONSUMER, dtypes=(np.int32,), keep_constants=True)
def shift_left_consumer(ctx, x, amount):
    return _zero_out_of_range(
        lambda x, n: emit("Mul", x, _looked_up(_POWERS, n)), tensor(x), amount
    )


@rule("shift_right_logical", target=CONSUMER, dtypes=(np.int32,), keep_constants=True)
def shift_right_logical_consumer(ctx, x, amount):
    """The arithmetic shift of a negative number repeats its sign, which is taken away."""

    def shift(x, n):
        zero = constant(0, np.int32)
        sign = emit("SelectV2", emit("Less", x, zero), _looked_up(_SIGNS, n), zero)
        return emit("AddV2", _shift_arithmetic(x, n), sign)

    return _zero_out_of_range(shift, tensor(x), amount)


@rule("shift_right_arithmetic", target=CONSUMER, dtypes=(np.int32,), keep_constants=True)
def shift_right_arithmetic_consumer(ctx, x, amount):
    if not _is_known_in_range(amount):
        amount, last = tensor(amount), constant(31, np.int32)
        amount = emit("SelectV2", _is_below_32(amount), amount, last)
    return _shift_arithmetic(tensor(x), amount)


def _shift_arithmetic(x, amount):
    """A shift of int32 by 0 to 31; it is a division, or two of them for the highest power."""
    if kernels.supports("RightShift", tf.int32):
        return emit("RightShift", x, tensor(amount))
    if isinstance(amount, np.ndarray) and amount.max(initial=0) < 31:
        return emit("FloorDiv", x, _looked_up(_POWERS, amount))
    steps = np.arange(32)
    first, second = _POWERS[steps // 2], _POWERS[steps - steps // 2]
    return emit(
        "FloorDiv", emit("FloorDiv", x, _looked_up(first, amount)), _looked_up(second, amount)
    )


def _zero_out_of_range(shift, x, amount):
    """A shift of int32 whose result is zero for an amount that is out of range."""
    if _is_known_in_range(amount):
        return shift(x, amount)
    amount, zero = tensor(amount), constant(0, np.int32)
    is_inside = _is_below_32(amount)
    return emit("SelectV2", is_inside, shift(x, emit("SelectV2", is_inside, amount, zero)), zero)


def _is_below_32(amount):
    above = emit("GreaterEqual", amount, constant(0, np.int32))
    return emit("LogicalAnd", above, emit("Less", amount, constant(32, np.int32)))


def _looked_up(table, amount):
    """Elements of a table of 32 numbers."""
    if isinstance(amount, np.ndarray):
        return constant(table[amount])
    return emit("GatherV2", constant(table), amount, constant(0, np.int32))


uint32_parts.register(
    {
        "shift_left": functools.partial(arithmetic.shift, is_left=True),
        "shift_right_logical": functools.partial(arithmetic.shift, is_left=False),
    }
)


@decomposition("shift_right_arithmetic", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def shift_right_arithmetic_uint32_tfjs(x, amount):
    """((x + 2^31) >> n) - (2^31 >> n), modulo 2^32, by logical shifts.

    H. S. Warren, Hacker's Delight, 2nd edition, section 2-7.
    """
    amount = lax.min(amount, np.uint32(31))
    half = np.uint32(1 << 31)
    offset = lax.shift_right_logical(jnp.broadcast_to(half, amount.shape), amount)
    return lax.shift_right_logical(x + half, amount) - offset


@on_promoted("shift_right_logical", dtypes=SHORT)
def shift_right_logical_short(x, amount, *, dtypes, storages, **_):
    """An arithmetic shift of the bits as a number that is not negative, so that zeros move in."""
    (dtype, _), (storage,) = dtypes, storages
    if dtype.kind == "u":
        return lax.shift_right_arithmetic(x, amount)
    bits = narrow_numbers.fit(x, np.dtype(f"u{dtype.name}"), storage)
    return narrow_numbers.fit(lax.shift_right_arithmetic(bits, amount), dtype, storage)


@on_promoted("shift_right_arithmetic", dtypes=SHORT)
def shift_right_arithmetic_short(x, amount, *, primitive, dtypes, storages):
    """Unsigned integers are shifted as if they were signed, too."""
    (dtype, _), (storage,) = dtypes, storages
    if dtype.kind == "i":
        return primitive.bind(x, amount)
    signed = narrow_numbers.fit(x, np.dtype(dtype.name[1:]), storage)
    return narrow_numbers.fit(primitive.bind(signed, amount), dtype, storage)


@on_promoted("shift_right_logical", dtypes=NARROW)
def shift_right_logical_narrow(*operands, primitive, dtypes, storages):
    bits = map(narrow_numbers.to_bits, operands, dtypes)
    return narrow_numbers.from_bits(primitive.bind(*bits), dtypes[0], storages[0])


@on_promoted("shift_right_arithmetic", dtypes=NARROW)
def shift_right_arithmetic_narrow(x, amount, *, primitive, dtypes, storages):
    """Unsigned integers are shifted as if they were signed, too."""
    (dtype, _), (storage,) = dtypes, storages
    signed = np.dtype(f"int{8 * storage.itemsize}")
    amount = narrow_numbers.to_bits(amount, dtype).astype(signed)
    if dtype in SIGNED:
        return primitive.bind(x, amount)
    x = narrow_numbers.fit(x, np.dtype(f"int{width(dtype)}"), signed)
    return narrow_numbers.fit(primitive.bind(x, amount), dtype, storage)
