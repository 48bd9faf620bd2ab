"""Ops in terms of others, for consumers that lack them.

`emission` asks here if the consumer of the graph takes an op in no dtype. A substitute is a
function of the same operands; it emits ops that may have substitutes themselves.
"""

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.ops import kernels
from lowering.ops.constants import constant, integers
from lowering.ops.emission import cast, emit, substitute


@substitute("ClipByValue")
def _clip_by_value(x, low, high):
    return emit("Minimum", emit("Maximum", x, low), high)


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
    """By how much the two rounded quotients of integers differ, given one: 0, or 1."""
    remainder = emit("Sub", x, emit("Mul", quotient, y))
    zero = constant(0, x.dtype)
    is_negative = emit("NotEqual", emit("Less", x, zero), emit("Less", y, zero))
    return cast(emit("LogicalAnd", is_negative, emit("NotEqual", remainder, zero)), x.dtype)


@substitute("FloorMod")
def _floor_mod(x, y):
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


# From here on float32 does not hold all integers.
_FLOAT_INTEGERS = 1 << 24
_HALF = 1 << 16


def _floor_div_by_floats(x, y):
    """The quotient where the op computes it in float32, as WebAssembly does in TF.js.

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
    """Not as a difference to zero, of which TensorFlow's optimizer makes a negation again."""
    return emit("Mul", x, constant(-1, x.dtype))


# Below this a sine is its angle, up to rounding.
_SMALL_ANGLE = 2.0**-12


@substitute("Sin")
def _sin(x):
    """By an op that gives zero for the smallest angles."""
    is_small = emit("Less", emit("Abs", x), constant(_SMALL_ANGLE, x.dtype))
    return emit("SelectV2", is_small, x, emit("Sin", x))


@substitute("SelectV2")
def _select(condition, x, y):
    """Of booleans."""
    chosen = emit("LogicalAnd", condition, x)
    return emit("LogicalOr", chosen, emit("LogicalAnd", emit("LogicalNot", condition), y))


@substitute("PadV2")
def _pad(x, paddings, padding):
    """An op that takes a number for the padding that float32 holds."""
    number = tf.get_static_value(padding)
    if number is not None and abs(int(number)) <= _FLOAT_INTEGERS:
        return emit("PadV2", x, paddings, padding)
    padded = emit("PadV2", emit("Sub", x, padding), paddings, constant(0, x.dtype))
    return emit("AddV2", padded, padding)


@substitute("StridedSlice")
def _strided_slice(x, begin, end, strides, end_mask=0):
    """Elements at a distance, gathered along each axis."""
    bounds = zip(
        *(tf.get_static_value(operand).tolist() for operand in (begin, end, strides)), strict=True
    )
    for axis, (start, limit, stride) in enumerate(bounds):
        size = x.shape[axis]
        limit = size if end_mask >> axis & 1 else limit
        if (start, limit, stride) != (0, size, 1):
            indices = constant(np.arange(start, limit, stride), np.int32)
            x = emit("GatherV2", x, indices, constant(axis, np.int32))
    return x


@substitute("BitwiseAnd")
def _bitwise_and(x, y):
    """A sum is the exclusive or, and twice the bits in common; of halves, which do not overflow."""
    if not kernels.supports("BitwiseXor", x.dtype):
        return _by_nibbles(np.bitwise_and, x, y)
    size = constant(1 << 16, x.dtype)

    def common(x, y):
        total = emit("AddV2", x, y)
        return emit("FloorDiv", emit("Sub", total, emit("BitwiseXor", x, y)), constant(2, x.dtype))

    high = common(emit("FloorDiv", x, size), emit("FloorDiv", y, size))
    low = common(emit("FloorMod", x, size), emit("FloorMod", y, size))
    return emit("AddV2", emit("Mul", high, size), low)


@substitute("BitwiseOr")
def _bitwise_or(x, y):
    return emit("Sub", emit("AddV2", x, y), emit("BitwiseAnd", x, y))


@substitute("BitwiseXor")
def _bitwise_xor(x, y):
    return _by_nibbles(np.bitwise_xor, x, y)


def _by_nibbles(fun, x, y):
    """A bitwise operation on int32 by a table for four bits, of each half."""
    numbers = np.arange(16, dtype=np.int32)
    table = constant(fun.outer(numbers, numbers).reshape(-1))
    powers = 16 ** np.arange(4, dtype=np.int32)
    in_half, size, half = constant(powers), constant(16, np.int32), constant(_HALF, np.int32)
    in_word = constant(np.stack([powers, powers * _HALF]))

    def nibbles(z):
        low, high = (emit("FloorMod", part, half) for part in (z, emit("FloorDiv", z, half)))
        halves = emit("ExpandDims", emit("Pack", [low, high], axis=-1), constant(-1, np.int32))
        return emit("FloorMod", emit("FloorDiv", halves, in_half), size)

    index = emit("AddV2", emit("Mul", nibbles(x), size), nibbles(y))
    found = emit("GatherV2", table, index, constant(0, np.int32))
    return emit("Sum", emit("Mul", found, in_word), integers([-2, -1]))


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


@substitute("Invert")
def _invert(x):
    return emit("Sub", constant(-1, x.dtype), x)


@substitute("Abs")
def _abs(x):
    return emit("Maximum", x, emit("Neg", x))


@substitute("Rint")
def _rint(x):
    return emit("Round", x)


@substitute("Expm1")
def _expm1(x):
    """By the tangent of half the argument, which loses no digits of small arguments."""
    half = emit("Mul", x, constant(0.5, x.dtype))
    small = emit("Mul", emit("Tanh", half), emit("AddV2", emit("Exp", x), constant(1, x.dtype)))
    large = emit("Sub", emit("Exp", x), constant(1, x.dtype))
    is_small = emit("Less", emit("Abs", x), constant(1, x.dtype))
    return emit("SelectV2", is_small, small, large)


@substitute("Log1p")
def _log1p(x):
    """A series in x / (2 + x) near zero, where the sum 1 + x loses digits, and so do some kernels.

    The coefficients are those of Sun Microsystems, fdlibm, `s_log1p.c`, 1993, for float32.
    """
    one, two, half = (constant(number, x.dtype) for number in (1, 2, 0.5))
    s = emit("RealDiv", x, emit("AddV2", two, x))
    half_square = emit("Mul", half, emit("Mul", x, x))
    z = emit("Mul", s, s)
    rest = emit("AddV2", half_square, emit("Mul", z, _horner(_LOG1P, z)))
    near = emit("Sub", x, emit("Sub", half_square, emit("Mul", s, rest)))
    is_large = emit("Greater", x, constant(1e9, x.dtype))
    far = emit(
        "SelectV2",
        is_large,
        _log_of_double(emit("Mul", x, half)),
        emit("Log", emit("AddV2", one, x)),
    )
    middle = emit("Sub", x, constant(0.06, x.dtype))
    is_near = emit("Less", emit("Abs", middle), constant(0.35, x.dtype))
    return emit("SelectV2", is_near, near, far)


# log((1 + s) / (1 - s)) / s - 2, over s^2, the highest power of s^2 first.
_LOG1P = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)


@substitute("IsInf")
def _is_inf(x):
    return emit("Equal", emit("Abs", x), constant(np.inf, x.dtype))


@substitute("IsNan")
def _is_nan(x):
    return emit("NotEqual", x, x)


@substitute("IsFinite")
def _is_finite(x):
    return emit("Less", emit("Abs", x), constant(np.inf, x.dtype))


@substitute("Asinh")
def _asinh(x):
    """log(a + sqrt(a^2 + 1)) of the size a, without the digits that cancel."""
    size, one = emit("Abs", x), constant(1, x.dtype)
    root = emit("Sqrt", emit("AddV2", emit("Mul", size, size), one))
    rest = emit("RealDiv", emit("Mul", size, size), emit("AddV2", one, root))
    small = emit("Log1p", emit("AddV2", size, rest))
    is_large = emit("Greater", size, constant(1e9, x.dtype))
    large = _log_of_double(size)
    return emit("Mul", emit("Sign", x), emit("SelectV2", is_large, large, small))


def _log_of_double(x):
    """log(2 x), of half of x: some kernels give infinity for the largest numbers."""
    half = emit("Mul", x, constant(0.5, x.dtype))
    return emit("AddV2", emit("Log", half), constant(2 * np.log(2), x.dtype))


@substitute("Acosh")
def _acosh(x):
    one = constant(1, x.dtype)
    t = emit("Sub", x, one)
    root = emit("Sqrt", emit("AddV2", emit("Mul", t, t), emit("AddV2", t, t)))
    small = emit("Log1p", emit("AddV2", t, root))
    return emit("SelectV2", emit("Greater", x, constant(1e9, x.dtype)), _log_of_double(x), small)


@substitute("Atanh")
def _atanh(x):
    """Of the size, as the logarithm loses digits near -1."""
    size, half = emit("Abs", x), constant(0.5, x.dtype)
    rest = emit("Sub", constant(1, x.dtype), size)
    quotient = emit("RealDiv", emit("AddV2", size, size), rest)
    return emit("Mul", emit("Sign", x), emit("Mul", half, emit("Log1p", quotient)))


@substitute("Sinh")
def _sinh(x):
    half = constant(0.5, x.dtype)
    e = emit("Expm1", emit("Abs", x))
    one = constant(1, x.dtype)
    size = emit("Mul", half, emit("AddV2", e, emit("RealDiv", e, emit("AddV2", e, one))))
    is_large = emit("Greater", e, constant(1e30, x.dtype))
    large = emit("Exp", emit("Sub", emit("Abs", x), constant(np.log(2), x.dtype)))
    return emit("Mul", emit("Sign", x), emit("SelectV2", is_large, large, size))


@substitute("Cosh")
def _cosh(x):
    half = emit("Exp", emit("Sub", emit("Abs", x), constant(np.log(2), x.dtype)))
    return emit("AddV2", half, emit("RealDiv", constant(0.25, x.dtype), half))


@substitute("Tan")
def _tan(x):
    return emit("RealDiv", emit("Sin", x), emit("Cos", x))


@substitute("Atan")
def _atan(x):
    # Not all kernels of Atan2 broadcast.
    return emit("Atan2", x, emit("Fill", _shape(x, tf.int32), constant(1, x.dtype)))


@substitute("Asin")
def _asin(x):
    return emit("Atan2", x, _leg(x))


@substitute("Acos")
def _acos(x):
    return emit("Atan2", _leg(x), x)


def _leg(x):
    """The other leg of a right triangle with hypotenuse 1."""
    one = constant(1, x.dtype)
    return emit("Sqrt", emit("Mul", emit("Sub", one, x), emit("AddV2", one, x)))


@substitute("Atan2")
def _atan2(y, x):
    """The angle in the right half plane, turned by half a turn where x is negative."""
    zero, one = constant(0, x.dtype), constant(1, x.dtype)
    larger = emit("Maximum", emit("Abs", x), emit("Abs", y))
    divisor = emit("SelectV2", emit("Equal", larger, zero), one, larger)
    ratios = []
    for z in (y, x):
        infinite = emit("SelectV2", emit("IsInf", z), emit("Sign", z), zero)
        ratios.append(
            emit("SelectV2", emit("IsInf", larger), infinite, emit("RealDiv", z, divisor))
        )
    steep = emit("Greater", emit("Abs", ratios[0]), emit("Abs", ratios[1]))
    low = emit("SelectV2", emit("Equal", larger, zero), one, ratios[1])
    low = emit("SelectV2", steep, one, low)
    high = emit("SelectV2", steep, ratios[0], one)
    flat = emit("Atan", emit("RealDiv", ratios[0], low))
    quarter = emit("Mul", emit("Sign", y), constant(np.pi / 2, x.dtype))
    up = emit("Sub", quarter, emit("Atan", emit("RealDiv", ratios[1], high)))
    is_left = emit("Less", x, zero)
    is_below = emit("Less", y, zero)
    turn = emit("SelectV2", is_below, constant(-np.pi, x.dtype), constant(np.pi, x.dtype))
    turned = emit("SelectV2", is_left, emit("AddV2", flat, turn), flat)
    return emit("SelectV2", steep, up, turned)


@substitute("TensorScatterUpdate")
def _tensor_scatter_update(tensor, index, updates, **_):
    """A choice between each element and its update, whose number is scattered to its place."""
    depth, count = index.shape[-1], index.shape[:-1].num_elements()
    if count is None or None in tensor.shape[:depth]:
        return tf.raw_ops.TensorScatterUpdate(tensor=tensor, indices=index, updates=updates)
    rest = tensor.shape.rank - depth
    numbers = constant(np.arange(1, count + 1).reshape(index.shape[:-1]), tf.int32)
    sizes = constant(tensor.shape.as_list()[:depth], index.dtype)
    number = emit("ScatterNd", index, numbers, sizes)
    zero, one = constant(0, tf.int32), constant(1, tf.int32)
    rows = emit("Reshape", updates, integers([count, *updates.shape[updates.shape.rank - rest :]]))
    # Kernels that add the numbers of elements with several updates may exceed the last one.
    last = constant(count - 1, tf.int32)
    place = emit("Minimum", emit("Maximum", emit("Sub", number, one), zero), last)
    is_updated = emit("Greater", number, zero)
    ones = [1] * rest
    is_updated = emit("Reshape", is_updated, integers([*tensor.shape.as_list()[:depth], *ones]))
    return emit("SelectV2", is_updated, emit("GatherV2", rows, place, zero), tensor)


@substitute("TensorScatterAdd")
def _tensor_scatter_add(tensor, index, updates, **_):
    """The sum of the updates of each element, added to it."""
    total = emit("ScatterNd", index, updates, _shape(tensor, index.dtype))
    return emit("AddV2", tensor, total)


@substitute("TensorScatterSub")
def _tensor_scatter_sub(tensor, index, updates, **_):
    total = emit("ScatterNd", index, updates, _shape(tensor, index.dtype))
    return emit("Sub", tensor, total)


def _shape(tensor: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The shape of a tensor, as integers of a dtype."""
    known = tensor.shape.as_list()
    if None not in known:
        return constant(np.array(known), dtype)
    return cast(tf.shape(tensor), dtype)


@substitute("Square")
def _square(x):
    return emit("Mul", x, x)


@substitute("Relu")
def _relu(x):
    return emit("Maximum", x, constant(0, x.dtype))


@substitute("Rsqrt")
def _rsqrt(x):
    return emit("RealDiv", constant(1, x.dtype), emit("Sqrt", x))


@substitute(kernels.BATCHED_GATHER)
def _gather_batches(x, indices, axis, batch_dims):
    """Elements of an axis that all batches are joined to."""
    axis, count = int(tf.get_static_value(axis)), x.shape.rank
    if axis > batch_dims:
        order = [*range(batch_dims), axis, *range(batch_dims, axis), *range(axis + 1, count)]
        first = constant(batch_dims, np.int32)
        y = _gather_batches(emit("Transpose", x, integers(order)), indices, first, batch_dims)
        end = indices.shape.rank
        before = [end + i for i in range(axis - batch_dims)]
        after = range(end + len(before), y.shape.rank)
        order = [*range(batch_dims), *before, *range(batch_dims, end), *after]
        return emit("Transpose", y, integers(order))
    sizes, positions = _dims(x), _dims(indices)
    batches, size, rest = sizes[:axis], sizes[axis], sizes[axis + 1 :]
    total = functools.reduce(_product, batches, size)
    starts = emit("Range", *(_scalar(n) for n in (0, total, size)))
    starts = emit("Reshape", starts, _packed(batches + [1] * (len(positions) - axis)))
    joined = emit("Reshape", x, _packed([total, *rest]))
    return emit("GatherV2", joined, emit("AddV2", indices, starts), constant(0, np.int32))


def _dims(x):
    """The sizes of axes: ints, or scalars of the graph where they are symbolic."""
    if None not in x.shape.as_list():
        return x.shape.as_list()
    found = emit("Shape", x)
    return [
        emit("GatherV2", found, constant(i, np.int32), constant(0, np.int32)) if n is None else n
        for i, n in enumerate(x.shape.as_list())
    ]


def _product(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return emit("Mul", _scalar(a), _scalar(b))


def _scalar(size):
    return constant(size, np.int32) if isinstance(size, int) else size


def _packed(sizes):
    """A shape as a tensor."""
    if all(isinstance(size, int) for size in sizes):
        return integers(sizes)
    return emit("Pack", list(map(_scalar, sizes)), axis=0)


@substitute("Sign")
def _sign(x):
    zero = constant(0, x.dtype)
    return emit(
        "Sub", cast(emit("Greater", x, zero), x.dtype), cast(emit("Less", x, zero), x.dtype)
    )


@substitute("Greater")
def _greater(x, y):
    return emit("Less", y, x)


@substitute("Erfc")
def _erfc(x):
    """Rational functions of the square, below 1 and above it.

    The coefficients are those of S. L. Moshier, Cephes, `ndtrf.c`, 1989.
    """
    size, square = emit("Abs", x), emit("Mul", x, x)
    small = emit("Sub", constant(1, x.dtype), emit("Mul", x, _horner(_ERF, square)))
    safe = emit("Maximum", size, constant(1, x.dtype))
    q = emit("RealDiv", constant(1, x.dtype), safe)
    z = emit("Exp", emit("Neg", emit("Mul", safe, safe)))
    y = emit("Mul", q, q)
    is_middle = emit("Less", safe, constant(2, x.dtype))
    factor = emit("SelectV2", is_middle, _horner(_ERFC_MIDDLE, y), _horner(_ERFC_TAIL, y))
    tail = emit("Mul", emit("Mul", z, q), factor)
    is_negative = emit("Less", x, constant(0, x.dtype))
    tail = emit("SelectV2", is_negative, emit("Sub", constant(2, x.dtype), tail), tail)
    return emit("SelectV2", emit("Less", size, constant(1, x.dtype)), small, tail)


@substitute("Erf")
def _erf(x):
    """The polynomial of small arguments, and one minus the complement of large ones."""
    square = emit("Mul", x, x)
    small = emit("Mul", x, _horner(_ERF, square))
    size = emit("Abs", x)
    large = emit("Mul", emit("Sign", x), emit("Sub", constant(1, x.dtype), emit("Erfc", size)))
    return emit("SelectV2", emit("Less", size, constant(1, x.dtype)), small, large)


# erf(x) / x on [0, 1], and exp(x^2) x erfc(x) on [1, 2] and above, in x^2 and x^-2.
_ERF = (
    7.853861353153693e-5,
    -8.010193625184903e-4,
    5.188327685732524e-3,
    -2.685381193529856e-2,
    1.128358514861418e-1,
    -3.761262582423300e-1,
    1.128379165726710e0,
)
_ERFC_MIDDLE = (
    2.326819970068386e-2,
    -1.387039388740657e-1,
    3.687424674597105e-1,
    -5.824733027278666e-1,
    6.210004621745983e-1,
    -4.944515323274145e-1,
    3.404879937665872e-1,
    -2.741127028184656e-1,
    5.638259427386472e-1,
)
_ERFC_TAIL = (
    -1.047766399936249e1,
    1.297719955372516e1,
    -7.495518717768503e0,
    2.921019019210786e0,
    -1.015265279202700e0,
    4.218463358204948e-1,
    -2.820767439740514e-1,
    5.641895067754075e-1,
)


def _horner(coefficients: Any, x: tf.Tensor) -> tf.Tensor:
    value = constant(coefficients[0], x.dtype)
    for coefficient in coefficients[1:]:
        value = emit("AddV2", emit("Mul", value, x), constant(coefficient, x.dtype))
    return value
