"""Arithmetic primitives of two operands."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import complex_math
from lowering.formats import narrow, rounding
from lowering.ops import cast, constant, dtypes, emit, extrema
from lowering.registry import Trait, decomposition, rule
from lowering.tensors import complex_division

_EXTREMUM = Trait.ELEMENTWISE | Trait.MONOID | Trait.SELECTS


@rule("add", traits=Trait.ELEMENTWISE | Trait.MONOID)
@rule("add_any", traits=Trait.ELEMENTWISE)
def add(ctx, x, y):
    return emit("AddV2", x, y, modular=True)


@rule("sub", traits=Trait.ELEMENTWISE)
def sub(ctx, x, y):
    return emit("Sub", x, y, modular=True)


@rule("mul", traits=Trait.ELEMENTWISE | Trait.MONOID)
def mul(ctx, x, y, **_):
    return emit("Mul", x, y, modular=True)


@rule("max", keep_constants=True, traits=_EXTREMUM)
def max_(ctx, x, y):
    return extrema.maximum(x, y)


@rule("max", dtypes=dtypes.BOOL)
def max_bool(ctx, x, y):
    return emit("LogicalOr", x, y)


@rule("min", keep_constants=True, traits=_EXTREMUM)
def min_(ctx, x, y):
    return extrema.minimum(x, y)


@rule("min", dtypes=dtypes.BOOL)
def min_bool(ctx, x, y):
    return emit("LogicalAnd", x, y)


@decomposition("max", dtypes=dtypes.COMPLEX)
def max_complex(x, y):
    return jnp.where(_less_complex(y, x), x, y)


@decomposition("min", dtypes=dtypes.COMPLEX)
def min_complex(x, y):
    return jnp.where(_less_complex(x, y), x, y)


def _less_complex(x, y):
    real_x, real_y = lax.real(x), lax.real(y)
    return (real_x < real_y) | (real_x == real_y) & (lax.imag(x) < lax.imag(y))


@rule("div", traits=Trait.ELEMENTWISE)
def div(ctx, x, y):
    return complex_division.divide(ctx, x, y) if x.dtype.is_complex else emit("RealDiv", x, y)


@rule("div", dtypes=dtypes.INTEGER, keep_constants=True)
def div_integer(ctx, x, y):
    """Division by zero gives -1 (all bits set), INT_MIN / -1 gives INT_MIN.

    TensorFlow raises an error for the former and crashes for the latter.
    """
    divisor = _Divisor(y)
    x = constant(x) if isinstance(x, np.ndarray) else x
    quotient = emit("TruncateDiv", x, divisor.safe)
    if divisor.is_safe:
        return quotient
    if not x.dtype.is_unsigned:
        quotient = emit("SelectV2", divisor.is_minus_one, emit("Neg", x), quotient)
    all_bits = constant(~np.zeros((), x.dtype.as_numpy_dtype))
    return emit("SelectV2", divisor.is_zero, all_bits, quotient)


@rule("rem", traits=Trait.ELEMENTWISE)
def rem(ctx, x, y):
    return emit("TruncateMod", x, y)


@rule("rem", dtypes=dtypes.INTEGER, keep_constants=True)
def rem_integer(ctx, x, y):
    """The remainder by zero is the dividend."""
    divisor = _Divisor(y)
    x = constant(x) if isinstance(x, np.ndarray) else x
    # Of non-negative numbers the remainders of both kinds of division are the same.
    remainder = emit("FloorMod" if x.dtype.is_unsigned else "TruncateMod", x, divisor.safe)
    return remainder if divisor.is_safe else emit("SelectV2", divisor.is_zero, x, remainder)


class _Divisor:
    """A divisor whose values that TensorFlow's kernels cannot take are replaced by one."""

    def __init__(self, y: tf.Tensor | np.ndarray):
        self.is_safe = isinstance(y, np.ndarray) and not np.any(
            (y == 0) | (y == ~np.zeros((), y.dtype))
        )
        y = constant(y) if isinstance(y, np.ndarray) else y
        self.safe = y
        if self.is_safe:
            return
        self.is_zero = trap = emit("Equal", y, constant(0, y.dtype))
        if not y.dtype.is_unsigned:
            self.is_minus_one = emit("Equal", y, constant(-1, y.dtype))
            trap = emit("LogicalOr", self.is_zero, self.is_minus_one)
        self.safe = emit("SelectV2", trap, constant(1, y.dtype), y)


@rule("atan2", traits=Trait.ELEMENTWISE)
def atan2(ctx, y, x):
    return emit("Atan2", y, x)


@decomposition("nextafter", dtypes=dtypes.NARROW)
@decomposition("nextafter", traits=Trait.ELEMENTWISE)
def nextafter(x, y):
    """One step in the order of the bits; from a zero to the first subnormal in the direction."""
    x, y = jnp.broadcast_arrays(x, y)
    word = np.dtype(f"int{ml_dtypes.finfo(x.dtype).bits}").type
    sign = int(ml_dtypes.iinfo(word).min)
    x_bits, y_bits = lax.bitcast_convert_type(x, word), lax.bitcast_convert_type(y, word)
    x_size, y_size = x_bits & ~sign, y_bits & ~sign
    inwards = (x_size > y_size) | ((x_bits ^ y_bits) < 0)
    stepped = jnp.where(inwards, x_bits - word(1), x_bits + word(1))
    bits = jnp.where(x_size == 0, (y_bits & sign) | word(1), stepped)
    result = jnp.where(x == y, y, lax.bitcast_convert_type(bits, x.dtype))
    return jnp.where((x != x) | (y != y), jnp.asarray(jnp.nan, x.dtype), result)


@rule("complex", traits=Trait.ELEMENTWISE)
def complex_(ctx, real, imag):
    return emit("Complex", real, imag, Tout=dtypes.to_tf(ctx.out_aval.dtype))


@rule("pow", traits=Trait.ELEMENTWISE)
def pow_(ctx, x, y):
    return emit("Pow", x, cast(y, x.dtype))


@decomposition("pow", dtypes=dtypes.COMPLEX)
def pow_complex(x, y):
    return complex_math.pow(x, y.astype(x.dtype))


@decomposition("atan2", dtypes=dtypes.COMPLEX)
def atan2_complex(y, x):
    return complex_math.atan2(y, x)


@decomposition("integer_pow", dtypes=dtypes.NARROW)
@decomposition("integer_pow")
def integer_pow(x, *, y):
    """Repeated squaring."""
    if y == 0:
        return jnp.ones(x.shape, x.dtype)
    result, power, n = None, x, abs(y)
    while n:
        if n & 1:
            result = power if result is None else result * power
        n >>= 1
        if n:
            power = lax.square(power)
    return jnp.ones((), x.dtype) / result if y < 0 else result


@decomposition("mulhi")
def mulhi(x, y):
    """The upper half of the product of twice the width."""
    bits = np.iinfo(x.dtype).bits
    signed = jnp.issubdtype(x.dtype, jnp.signedinteger)
    if bits < 64:
        wide = jnp.int64 if signed else jnp.uint64
        product = x.astype(wide) * y.astype(wide)
        return (product >> bits).astype(x.dtype)
    mask, half = np.array(0xFFFFFFFF, x.dtype), np.array(32, x.dtype)
    x_low, x_high, y_low, y_high = x & mask, x >> half, y & mask, y >> half
    low = lax.shift_right_logical(x_low * y_low, jnp.full(x.shape, half))
    middle = x_high * y_low + low
    upper = x_low * y_high + (middle & mask)
    return x_high * y_high + (middle >> half) + (upper >> half)


@rule("mulhi", dtypes=dtypes.NARROW)
def mulhi_narrow(ctx, x, y):
    """XLA takes the upper eight of sixteen bits for numbers of four bits."""
    dtype = ctx.in_avals[0].dtype
    if rounding.width(dtype) != 2:
        return narrow.apply(ctx, x, y)
    product = emit("Mul", x, y, modular=True)
    return rounding.narrow_to(emit("RightShift", product, constant(2, product.dtype)), dtype)
