"""Substitutes of ops on integers: quotients, remainders, bits and products of matrices."""

import functools

import numpy as np
import tensorflow as tf

from lowering.ops import kernels
from lowering.ops.constants import constant, integers
from lowering.ops.emission import cast, emit, substitute


@substitute("TruncateMod")
def _truncate_mod(x, y):
    """The remainder has the sign of the dividend."""
    if x.dtype.is_floating:
        return emit("Mul", emit("Sign", x), emit("FloorMod", emit("Abs", x), emit("Abs", y)))
    return emit("Sub", x, emit("Mul", y, emit("TruncateDiv", x, y)))


@substitute("TruncateDiv")
def _truncate_div(x, y):
    """The quotient rounded down, and one more where that is not the quotient rounded to zero."""
    down = emit("FloorDiv", x, y)
    return emit("AddV2", down, _difference(x, y, down))


def _difference(x, y, quotient):
    """1 where the quotients of integers, rounded down and to zero, differ, else 0; one is given."""
    remainder = emit("Sub", x, emit("Mul", quotient, y))
    zero = constant(0, x.dtype)
    is_negative = emit("NotEqual", emit("Less", x, zero), emit("Less", y, zero))
    return cast(emit("LogicalAnd", is_negative, emit("NotEqual", remainder, zero)), x.dtype)


@substitute("FloorMod")
def _floor_mod(x, y):
    """The remainder of a quotient rounded down, from the other one for a known positive divisor."""
    divisor = tf.get_static_value(y)
    is_positive = divisor is not None and bool(np.all(divisor > 0))
    if is_positive and x.dtype.is_integer and kernels.supports("TruncateMod", x.dtype):
        remainder = emit("TruncateMod", x, y)
        is_negative = emit("Less", remainder, constant(0, x.dtype))
        return emit("SelectV2", is_negative, emit("AddV2", remainder, y), remainder)
    return emit("Sub", x, emit("Mul", y, emit("FloorDiv", x, y)))


@substitute("FloorDiv")
def _floor_div(x, y):
    """The quotient rounded to zero, and one less where that is not the quotient rounded down."""
    if x.dtype.is_floating:
        return emit("Floor", emit("RealDiv", x, y))
    if not kernels.supports("TruncateDiv", x.dtype):
        return _floor_div_by_floats(x, y)
    truncated = emit("TruncateDiv", x, y)
    return emit("Sub", truncated, _difference(x, y, truncated))


# Up to here, all integers are numbers of float32.
_FLOAT_INTEGERS = 1 << 24

_HALF = 1 << 16


def _floor_div_by_floats(x, y):
    """The quotient where the op computes it in float32 (`tfjs.quirks.quotients_in_float32`).

    It is exact for integers below 2^24, and for multiples of 2^8 by powers of two from there on.
    """
    divisor = tf.get_static_value(y)
    if divisor is None or np.any(divisor <= 0):
        return _floor_div_in_steps(x, y)
    if _is_below(x, _FLOAT_INTEGERS):
        return emit("FloorDiv", x, y)
    if np.any(np.bitwise_count(divisor) != 1):
        return _floor_div_in_steps(x, y)
    if np.all(divisor >= 1 << 8):
        return emit("FloorDiv", emit("Sub", x, emit("FloorMod", x, y)), y)
    if np.any(divisor > _HALF):
        return _floor_div_in_steps(x, y)
    half = constant(_HALF, x.dtype)
    low = emit("FloorMod", x, half)
    high = emit("FloorDiv", emit("Sub", x, low), half)
    high = emit("Mul", high, constant(_HALF // divisor, x.dtype))
    return emit("AddV2", high, emit("FloorDiv", low, y))


def _is_below(x, limit):
    """Whether integers are known to be remainders by a number up to a limit."""
    if not tf.is_symbolic_tensor(x):
        return False
    if x.op.type in ("ExpandDims", "Pack", "Reshape"):
        moved = x.op.inputs if x.op.type == "Pack" else x.op.inputs[:1]
        return all(_is_below(part, limit) for part in moved)
    if x.op.type != "FloorMod":
        return False
    divisor = tf.get_static_value(x.op.inputs[1])
    return divisor is not None and bool(np.all(np.abs(divisor.astype(np.int64)) <= limit))


def _floor_div_in_steps(x, y):
    """A quotient is off by up to 2^9; that of what is left is off by at most one."""

    def divided(x):
        quotient = emit("FloorDiv", x, y)
        return quotient, emit("Sub", x, emit("Mul", quotient, y))

    zero, one = (constant(n, x.dtype) for n in (0, 1))
    quotient, left = divided(x)
    rest, left = divided(left)
    is_too_small = emit("Equal", emit("Less", left, zero), emit("Less", y, zero))
    correction = emit("SelectV2", is_too_small, one, constant(-1, x.dtype))
    is_exact = emit("Equal", emit("FloorMod", left, y), left)
    correction = emit("SelectV2", is_exact, zero, correction)
    return emit("AddV2", emit("AddV2", quotient, rest), correction)


@substitute("Neg")
def _neg(x):
    """A product, as TensorFlow's optimizer makes a negation of a difference to zero."""
    return emit("Mul", x, constant(-1, x.dtype))


@substitute("BitwiseAnd")
def _bitwise_and(x, y):
    """((x + y) - (x ^ y)) / 2, of 16 bits at a time, whose sums do not overflow."""
    if not kernels.supports("BitwiseXor", x.dtype):
        return _by_nibbles(np.bitwise_and, x, y)
    for mask, other in ((x, y), (y, x)):
        if _is_low_mask(mask):
            return emit("FloorMod", other, emit("AddV2", mask, constant(1, x.dtype)))
    size = constant(1 << 16, x.dtype)

    def common(x, y):
        total = emit("AddV2", x, y)
        return emit("FloorDiv", emit("Sub", total, emit("BitwiseXor", x, y)), constant(2, x.dtype))

    high = common(emit("FloorDiv", x, size), emit("FloorDiv", y, size))
    low = common(emit("FloorMod", x, size), emit("FloorMod", y, size))
    return emit("AddV2", emit("Mul", high, size), low)


def _is_low_mask(x):
    """Whether integers are known to have lower bits alone, not all of those below the sign."""
    known = tf.get_static_value(x)
    if known is None or not known.size:
        return False
    largest = np.iinfo(known.dtype).max
    return bool(np.all((known >= 0) & (known < largest) & (known & (known + 1) == 0)))


@substitute("BitwiseOr")
def _bitwise_or(x, y):
    return emit("Sub", emit("AddV2", x, y), emit("BitwiseAnd", x, y))


@substitute("BitwiseXor")
def _bitwise_xor(x, y):
    return _by_nibbles(np.bitwise_xor, x, y)


def _by_nibbles(fun, x, y):
    """A bitwise operation on integers by a table for four bits, of 16 bits at a time.

    No sum is larger than these, as sums of large integers may be wrong
    (`onnx.quirks.sums_of_large_integers`).
    """
    dtype = tf.int64 if x.dtype.size == 8 else tf.int32
    if x.dtype != dtype:
        return cast(_by_nibbles(fun, cast(x, dtype), cast(y, dtype)), x.dtype)
    kind = dtype.as_numpy_dtype
    numbers, count = np.arange(16, dtype=kind), dtype.size // 2
    table = constant(fun.outer(numbers, numbers).reshape(-1))
    in_part = constant(16 ** np.arange(4, dtype=kind))
    size, part = constant(16, kind), constant(_HALF, kind)
    scales = [constant(kind(_HALF) ** kind(i)) for i in range(count)]

    def nibbles(z):
        parts = [z, *(emit("FloorDiv", z, scale) for scale in scales[1:])]
        stacked = emit("Pack", [emit("FloorMod", x, part) for x in parts], axis=-1)
        parts = emit("ExpandDims", stacked, constant(-1, np.int32))
        return emit("FloorMod", emit("FloorDiv", parts, in_part), size)

    index = emit("AddV2", emit("Mul", nibbles(x), size), nibbles(y))
    found = emit("GatherV2", table, index, constant(0, np.int32))
    sums = tf.unstack(emit("Sum", emit("Mul", found, in_part), integers([-1])), count, axis=-1)
    scaled = [sums[0], *map(functools.partial(emit, "Mul"), sums[1:], scales[1:])]
    return functools.reduce(functools.partial(emit, "AddV2"), scaled)


@substitute("MatMul")
def _mat_mul(a, b, transpose_a=False, transpose_b=False):
    return _sum_of_products(a, b, transpose_a, transpose_b)


@substitute("BatchMatMulV2")
def _batch_mat_mul(x, y, adj_x=False, adj_y=False):
    return _sum_of_products(x, y, adj_x, adj_y)


def _sum_of_products(x, y, transpose_x, transpose_y):
    """Products of matrices of integers, summed."""
    x = emit("ExpandDims", _transposed(x, transpose_x), constant(-1, np.int32))
    y = emit("ExpandDims", _transposed(y, transpose_y), constant(-3, np.int32))
    return emit("Sum", emit("Mul", x, y), integers([-2]))


def _transposed(x, is_transposed):
    *batch, rows, columns = range(x.shape.rank)
    return emit("Transpose", x, integers([*batch, columns, rows])) if is_transposed else x
