"""Divisions and bits of integers."""

from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.errors import UnsupportedError
from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of, dtype_of, made_by
from lowering.targets import ONNX

# Since these versions ONNX has operators on bits, and shifts of numbers with signs.
_BITWISE, _SIGNED_SHIFTS = 18, 28


@op("TruncateDiv")
def truncate_div(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """A quotient that is rounded to zero, as integers of ONNX are."""
    return b.op("Div", x, y)


@op("TruncateMod")
def truncate_mod(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """A remainder with the sign of the dividend."""
    return b.op("Mod", x, y, fmod=1)


@op("FloorDiv")
def floor_div(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """A quotient that is rounded down."""
    quotient = b.op("Div", x, y)
    if node.inputs[0].dtype.is_floating:
        return b.op("Floor", quotient)
    if node.inputs[0].dtype.is_unsigned:
        return quotient
    product = b.op("Mul", quotient, y)
    if _is_positive(y):
        is_rounded_up = b.op("Greater", product, x)
    else:
        is_rounded_up = _has_other_sign(b, b.op("Sub", x, product), y)
    return b.op("Sub", quotient, b.cast(is_rounded_up, dtype_of(x)))


@op("FloorMod")
def floor_mod(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """A remainder with the sign of the divisor."""
    if node.inputs[0].dtype.is_integer:
        return b.op("Mod", x, y)
    remainder = b.op("Mod", x, y, fmod=1)
    moved = b.op("Add", remainder, y)
    return b.op("Where", _has_other_sign(b, remainder, y), moved, remainder)


def _has_other_sign(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Whether one of two numbers is negative, and the first not zero."""
    zero = b.like(x, 0)
    if _is_positive(y):
        return b.op("Less", x, zero)
    differ = b.op("Xor", b.op("Less", x, zero), b.op("Less", y, zero))
    return b.op("And", differ, b.op("Not", b.op("Equal", x, zero)))


def _is_positive(x: ir.Value) -> bool:
    """Whether all numbers are known to be positive."""
    known = array_of(x)
    return known is not None and bool(np.all(known > 0))


@op("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """An op on bits. Of a number that is shifted to the right, the sign may be of no account."""
    _check_opset(b, node, ONNX.ops_since[node.type])
    if node.type == "BitwiseAnd":
        return _masked(b, x, y) or _masked(b, y, x) or b.op("BitwiseAnd", x, y)
    return b.op(node.type, x, y)


@op("Invert")
def invert(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The complement, whose own is the number; before ONNX had it, -1 less the number."""
    if b.opset < _BITWISE:
        return b.op("Sub", b.cast(b.constant(np.int64(-1)), dtype_of(x)), x)
    return made_by(x, "BitwiseNot") or b.op("BitwiseNot", x)


@op("LeftShift")
def left_shift(b: Builder, node: Any, x: ir.Value, count: ir.Value) -> ir.Value:
    """A shift to the left, which is the same with and without sign."""
    return _shift(b, x, count, "LEFT")


@op("RightShift")
def right_shift(b: Builder, node: Any, x: ir.Value, count: ir.Value) -> ir.Value:
    """A shift to the right. Negative numbers have copies of their sign in front, in 64 bits."""
    dtype = dtype_of(x)
    if dtype not in dtypes.UNSIGNED:
        return _shift(b, x, count, "RIGHT")
    if b.opset >= _SIGNED_SHIFTS:
        return b.op("BitShift", x, count, direction="RIGHT")
    if dtype == dtypes.INT64:
        # A shifted negative number is the complement of its shifted complement.
        is_negative, ones = b.op("Less", x, b.like(x, 0)), b.like(x, -1)
        shifted = _shift(b, b.op("Where", is_negative, b.op("Sub", ones, x), x), count, "RIGHT")
        return b.op("Where", is_negative, b.op("Sub", ones, shifted), shifted)
    wide = [b.cast(each, dtypes.UINT64) for each in (x, count)]
    result = b.cast(b.op("BitShift", *wide, direction="RIGHT"), dtype)
    b.shared["shifted", id(result)] = x, count, result
    return result


def _shift(b: Builder, x: ir.Value, count: ir.Value, direction: str) -> ir.Value:
    """A shift of numbers without signs, which are all that ONNX shifts."""
    dtype = dtypes.UNSIGNED.get(dtype_of(x), dtype_of(x))
    shifted = b.op("BitShift", b.cast(x, dtype), b.cast(count, dtype), direction=direction)
    return b.cast(shifted, dtype_of(x))


def _masked(b: Builder, x: ir.Value, mask: ir.Value) -> ir.Value | None:
    """Some of the bits of a number that is shifted to the right, none of them copies of its sign.

    Such numbers are shifted without sign.
    """
    shift = b.shared.get(("shifted", id(x)))
    bits = array_of(mask)
    if shift is None or bits is None:
        return None
    unshifted, count, _ = shift
    known, size = array_of(count), dtypes.BITS[dtype_of(x)]
    if known is None or known.size != 1 or bits.size != 1 or not 0 <= int(known.reshape(())) < size:
        return None
    moved, number = int(known.reshape(())), int(bits.reshape(()))
    all_moved = (1 << (size - moved)) - 1
    if not 0 <= number <= all_moved:
        return None
    shifted = _shift(b, unshifted, count, "RIGHT")
    return shifted if number == all_moved else b.op("BitwiseAnd", shifted, mask)


@op("Bitcast")
def bitcast(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The same bits in another dtype of the same size."""
    dtype = dtypes.of(node.outputs[0].dtype)
    if node.inputs[0].dtype.size != node.outputs[0].dtype.size:
        raise UnsupportedError(
            f"{node.name!r} is Bitcast to another size, which lowering does not write to ONNX"
        )
    if dtypes.BITS.get(dtype_of(x)) == dtypes.BITS.get(dtype, 0):
        return b.cast(x, dtype)
    _check_opset(b, node, ONNX.ops_since[node.type])
    return b.op("BitCast", x, to=int(dtype), dtype=dtype)


def _check_opset(b: Builder, node: Any, least: int) -> None:
    if b.opset < least:
        raise UnsupportedError(
            f"{node.name!r} is {node.type}, which ONNX has since opset {least}; this is {b.opset}"
        )
