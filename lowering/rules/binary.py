"""Arithmetic primitives of two operands."""

import functools

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import complex_math, floats, integers
from lowering.arrays import split_arithmetic as arithmetic
from lowering.narrow_formats import NARROW
from lowering.ops import cast, constant, dtypes, emit, extrema, tuning
from lowering.ops.values import source, tensor
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.rules import uint32_parts
from lowering.rules.unary import register_ops
from lowering.targets import CONSUMER, PORTABLE, TFJS, TFLITE, Mode
from lowering.tensors import complex_division, movement

register_ops({"add": "AddV2"}, modular=True, traits=Trait.MONOID | Trait.LINEAR)
register_ops({"mul": "Mul"}, modular=True, traits=Trait.MONOID)
register_ops({"add_any": "AddV2"}, modular=True, traits=Trait.LINEAR)
register_ops({"atan2": "Atan2", "rem": "TruncateMod"})


@rule("add", target=TFLITE, dtypes=(np.float32,), keep_constants=True)
def add_tflite(ctx, x, y):
    """A bias is passed as a vector, which the converter fuses into the layer before it."""
    x, y = _as_bias(x, y), _as_bias(y, x)
    return emit("AddV2", tensor(x), tensor(y))


def _as_bias(x, other):
    """`x`, as a vector if it is the same along all axes of the other operand but the last."""
    is_bias = isinstance(x, np.ndarray) and x.ndim > 1 and x.size == x.shape[-1]
    is_of_array = not isinstance(other, np.ndarray) and other.shape.rank == np.ndim(x)
    return np.reshape(x, (-1,)) if is_bias and is_of_array else x


@rule("atan2", target=TFLITE)
def atan2_tflite(ctx, y, x):
    """See `tflite.quirks.atan2_without_broadcast`."""
    shape = ctx.out_aval.shape
    return emit("Atan2", *(movement.broadcast(ctx, z, shape) for z in (y, x)))


register_ops({"max": "LogicalOr", "min": "LogicalAnd"}, dtypes=dtypes.BOOL)


@rule("mul", target=TFJS, dtypes=(np.int32,), keep_constants=True)
def mul_tfjs(ctx, x, y, **_):
    """Large products are computed by 16-bit factors; see `tfjs.quirks.products_in_float64`.

    TensorFlow's optimizer makes one product, with a large constant, of several with constants.
    """
    for operand, other in ((x, y), (y, x)):
        if isinstance(other, np.ndarray) and _is_exact_factor(other):
            operand = tensor(operand)
            maker = source(operand)
            if maker is None or maker.type != "Mul":
                return emit("Mul", operand, constant(other))
    return _product(tensor(x), tensor(y))


@rule("square", target=TFJS, dtypes=(np.int32,))
def square_tfjs(ctx, x, **_):
    return _product(x, x)


def _is_exact_factor(factor):
    """Whether the products of all int32 and a factor are numbers of float64."""
    sizes = np.abs(factor.astype(np.int64))
    return bool(np.all((sizes <= 1 << 21) | (sizes & -sizes == sizes)))


def _product(x, y):
    size = constant(1 << 16, np.int32)
    high = emit("Mul", emit("Mul", emit("FloorDiv", x, size), y), size)
    return emit("AddV2", high, emit("Mul", emit("FloorMod", x, size), y))


uint32_parts.register(
    {
        "add": arithmetic.add,
        "add_any": arithmetic.add,
        "sub": arithmetic.subtract,
        "mul": arithmetic.multiply,
        "square": lambda x: arithmetic.multiply(x, x),
    }
)


_EXTREMUM = Trait.ELEMENTWISE | Trait.MONOID | Trait.SELECTS
rule("max", keep_constants=True, traits=_EXTREMUM)(lambda ctx, x, y: extrema.maximum(x, y))
rule("min", keep_constants=True, traits=_EXTREMUM)(lambda ctx, x, y: extrema.minimum(x, y))


register_ops({"min": "Minimum"}, target=PORTABLE, dtypes=dtypes.FLOAT)
register_ops(
    {
        "floor_divide": "FloorDiv",
        "floor_mod": "FloorMod",
        "squared_difference": "SquaredDifference",
    },
    target=PORTABLE,
)


@rule("max", target=PORTABLE, dtypes=dtypes.FLOAT, keep_constants=True)
def max_natural(ctx, x, y):
    """The maximum with zero is a rectifier."""
    for operand, other in ((x, y), (y, x)):
        if (
            isinstance(other, np.ndarray)
            and not other.any()
            and not isinstance(operand, np.ndarray)
        ):
            if tuning.rectifies_by_select(ctx.target):
                zero = constant(0, operand.dtype)
                return emit("SelectV2", emit("LessEqual", operand, zero), zero, operand)
            return emit("Relu", operand)
    return emit("Maximum", tensor(x), tensor(y))


legalization("max", dtypes=dtypes.UNSIGNED_32)(lambda x, y: jnp.where(x < y, y, x))
legalization("min", dtypes=dtypes.UNSIGNED_32)(lambda x, y: jnp.where(x < y, x, y))
decomposition("max", dtypes=dtypes.COMPLEX)(complex_math.maximum)
decomposition("min", dtypes=dtypes.COMPLEX)(complex_math.minimum)


register_ops({"sub": "Sub"}, modular=True, traits=Trait.LINEAR)


@rule("sub", target=PORTABLE, dtypes=dtypes.FLOAT, keep_constants=True)
def sub_natural(ctx, x, y):
    if _is_known(ctx, x, 0):
        return emit("Neg", tensor(y))
    return emit("Sub", tensor(x), tensor(y))


register_ops({"div": "RealDiv"}, target=CONSUMER, dtypes=dtypes.WIDE_FLOAT)


def _is_known(ctx, x, number):
    """Whether an operand in a graph is known to be the same number everywhere."""
    return ctx.mode is Mode.GRAPH and isinstance(x, np.ndarray) and bool(np.all(x == number))


@rule("div", traits=Trait.ELEMENTWISE)
def div(ctx, x, y):
    if x.dtype.is_complex:
        return complex_division.divide(ctx, x, y)
    return emit("RealDiv", x, y)


legalization("mul", dtypes=dtypes.COMPLEX)(lambda x, y, **_: complex_math.multiply(x, y))
legalization("div", dtypes=dtypes.COMPLEX)(complex_math.divide)


@rule("div", dtypes=dtypes.INTEGER, keep_constants=True)
def div_integer(ctx, x, y):
    """Division by zero gives -1 (all bits set), INT_MIN / -1 gives INT_MIN.

    TensorFlow raises an error for the former and crashes for the latter.
    """
    divisor, is_zero, is_minus_one = _safe_divisor(y)
    x = tensor(x)
    quotient = emit("TruncateDiv", x, divisor)
    if is_minus_one is not None:
        quotient = emit("SelectV2", is_minus_one, emit("Neg", x), quotient)
    if is_zero is None:
        return quotient
    all_bits = constant(~np.zeros((), x.dtype.as_numpy_dtype))
    return emit("SelectV2", is_zero, all_bits, quotient)


@rule("rem", dtypes=dtypes.INTEGER, keep_constants=True, traits=Trait.IN_RANGE)
def rem_integer(ctx, x, y):
    """The remainder by zero is the dividend."""
    divisor, is_zero, _ = _safe_divisor(y)
    x = tensor(x)
    # The remainders of unsigned integers are the same, and only FloorMod has kernels.
    remainder = emit("FloorMod" if x.dtype.is_unsigned else "TruncateMod", x, divisor)
    return remainder if is_zero is None else emit("SelectV2", is_zero, x, remainder)


for _primitive, _general, _tfjs in (
    ("div", integers.divide, integers.divide_by_floats),
    ("rem", integers.remainder, integers.remainder_by_floats),
):
    legalization(_primitive, dtypes=dtypes.UNSIGNED_32)(_general)
    decomposition(_primitive, target=TFJS, dtypes=dtypes.UNSIGNED_32)(_tfjs)


def _safe_divisor(y):
    """Replaces 0 and -1, by which TensorFlow's kernels cannot divide, by 1.

    Returns:
      The divisor, and where `y` is 0 and where it is -1: None where it is known that it never is.
    """
    if isinstance(y, np.ndarray) and not np.any((y == 0) | (y == np.invert(np.zeros((), y.dtype)))):
        return constant(y), None, None
    y = tensor(y)
    is_zero, is_minus_one = emit("Equal", y, constant(0, y.dtype)), None
    is_unsafe = is_zero
    if not y.dtype.is_unsigned:
        is_minus_one = emit("Equal", y, constant(-1, y.dtype))
        is_unsafe = emit("LogicalOr", is_zero, is_minus_one)
    return emit("SelectV2", is_unsafe, constant(1, y.dtype), y), is_zero, is_minus_one


decomposition("nextafter", traits=Trait.ELEMENTWISE | Trait.OF_BITS)(floats.next_after)
decomposition("nextafter", dtypes=NARROW)(floats.next_after)


@rule("complex", traits=Trait.ELEMENTWISE)
def complex_(ctx, real, imag):
    return emit("Complex", real, imag, Tout=dtypes.to_tf(ctx.out_aval.dtype))


def _root(x):
    """The power of 1/2, which differs from the square root in -0 and negative infinity."""
    is_outside = (x < 0) & (x != -jnp.inf)
    return jnp.where(is_outside, jnp.asarray(jnp.nan, x.dtype), lax.sqrt(lax.abs(x)))


def _natural_root(x):
    """As `_root`, but the power of -0 may be -0."""
    return jnp.where(x == -jnp.inf, jnp.asarray(jnp.inf, x.dtype), lax.sqrt(x))


# See `grappler.quirks.powers_with_known_exponents`.
_KNOWN_POWERS = {
    0: jnp.ones_like,
    -1: lambda x: jnp.ones((), x.dtype) / x,
    0.5: _root,
    -0.5: lambda x: jnp.ones((), x.dtype) / _root(x),
}


@rule("pow", keep_constants=True, traits=Trait.ELEMENTWISE)
def pow_(ctx, x, y):
    powers = {**_KNOWN_POWERS, 0.5: _natural_root} if ctx.target.is_natural else _KNOWN_POWERS
    for exponent, power in powers.items():
        if _is_known(ctx, y, exponent):
            return ctx.lower(power, x, avals=ctx.in_avals[:1])
    x = tensor(x)
    dtype = x.dtype
    if dtype == tf.bfloat16:  # Its kernel gives NaN for the power of NaN to 0.
        x = cast(x, tf.float32)
    return cast(emit("Pow", x, cast(tensor(y), x.dtype)), dtype)


@decomposition("pow", target=CONSUMER, dtypes=dtypes.LOW_PRECISION)
def pow_low_precision(x, y):
    """JAX rounds integer exponents to the dtype, which may make an odd one even."""
    info = jnp.finfo(x.dtype)
    exponent = y.astype(np.float32)
    if jnp.issubdtype(y.dtype, np.integer):
        exponent = lax.reduce_precision(exponent, info.nexp, info.nmant)
    return lax.pow(x.astype(np.float32), exponent).astype(x.dtype)


@rule("pow", target=TFLITE, dtypes=(np.float32,), keep_constants=True)
def pow_tflite(ctx, x, y):
    """See `tflite.runtime_quirks.powers_that_overflow`."""
    powers = {
        3: functools.partial(integer_pow_tflite, y=3),
        0.5: functools.partial(_by_quarters, _natural_root),
        -0.5: lambda x: jnp.ones((), x.dtype) / _by_quarters(_root, x),
    }
    for exponent, power in powers.items():
        if _is_known(ctx, y, exponent):
            return ctx.lower(power, x, avals=ctx.in_avals[:1])
    return pow_(ctx, x, y)


def _by_quarters(root, x):
    """See `tflite.runtime_quirks.roots_of_the_largest_numbers`."""
    is_large, one = x > 1, jnp.ones((), x.dtype)
    return jnp.where(is_large, 2 * one, one) * root(jnp.where(is_large, 0.25 * x, x))


@rule("pow", target=TFJS, dtypes=(np.float32,), keep_constants=True)
def pow_tfjs(ctx, x, y):
    """See `tfjs.quirks.infinite_powers_of_one`."""
    power = pow_(ctx, x, y)
    if isinstance(y, np.ndarray) and np.all(np.isfinite(y)):
        return power
    x, y = tensor(x), tensor(y)
    if not y.dtype.is_floating:
        return power
    one = constant(1, x.dtype)
    is_one = emit("LogicalAnd", emit("Equal", emit("Abs", x), one), emit("IsInf", y))
    return emit("SelectV2", is_one, one, power)


@legalization("pow", dtypes=dtypes.UNSIGNED_32)
def pow_uint32(x, y):
    return lax.pow(x, lax.convert_element_type(y, x.dtype))


@decomposition("pow", dtypes=dtypes.COMPLEX)
def pow_complex(x, y):
    return complex_math.pow(x, y.astype(x.dtype))


decomposition("atan2", dtypes=dtypes.COMPLEX)(complex_math.atan2)


@decomposition("integer_pow", dtypes=NARROW)
@decomposition("integer_pow", traits=Trait.PROMOTED)
def integer_pow(x, *, y):
    """Exponentiation by squaring."""
    result, power, n = None, x, abs(y)
    while n:
        if n & 1:
            result = power if result is None else result * power
        n >>= 1
        if n:
            power = lax.square(power)
    if result is None:
        return jnp.ones(x.shape, x.dtype)
    return jnp.ones((), x.dtype) / result if y < 0 else result


@decomposition("integer_pow", target=TFLITE, dtypes=(np.float32,))
def integer_pow_tflite(x, *, y):
    """The third power as two products, by which the converter recognizes the approximate GELU."""
    return x * (x * x) if y == 3 else integer_pow(x, y=y)


decomposition("mulhi")(integers.upper_half)
decomposition("mulhi", target=CONSUMER, dtypes=(np.int32,))(integers.upper_half_of_int32)
on_promoted("mulhi", dtypes=NARROW)(integers.upper_half_of_narrow)
