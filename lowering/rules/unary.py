"""Elementwise primitives of one operand."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.arrays import complex_math
from lowering.ops import constant, dtypes, emit
from lowering.registry import Trait, decomposition, rule

_OPS = {
    "abs": "Abs",
    "floor": "Floor",
    "ceil": "Ceil",
    "is_finite": "IsFinite",
    "exp": "Exp",
    "expm1": "Expm1",
    "log": "Log",
    "log1p": "Log1p",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "sqrt": "Sqrt",
    "rsqrt": "Rsqrt",
    "logistic": "Sigmoid",
}


def register_ops(ops):
    """Registers primitives that are one op each.

    Args:
      ops: the op of each primitive, by name.
    """
    for primitive, op in ops.items():
        rule(primitive, traits=Trait.ELEMENTWISE)(lambda ctx, x, op=op, **_: emit(op, x))


register_ops(_OPS)


@rule("neg", traits=Trait.ELEMENTWISE)
def neg(ctx, x):
    return emit("Neg", x, modular=True)


@rule("square", traits=Trait.ELEMENTWISE)
def square(ctx, x):
    return emit("Square", x)


@rule("sign", traits=Trait.ELEMENTWISE)
def sign(ctx, x):
    """The sign of a zero is that zero."""
    result = emit("Sign", x)
    if not x.dtype.is_floating:
        return result
    zero = constant(0, x.dtype)
    return emit("SelectV2", emit("Equal", x, zero), emit("Mul", x, zero), result)


@rule("sign", dtypes=dtypes.UNSIGNED)
def sign_unsigned(ctx, x):
    return emit("Minimum", x, constant(1, x.dtype))


@decomposition("sign", dtypes=dtypes.COMPLEX)
def sign_complex(x):
    size = lax.abs(x)
    direction = lax.complex(lax.real(x) / size, lax.imag(x) / size)
    return jnp.where(size == 0, x, direction)


@decomposition("one_minus_square")
def one_minus_square(x):
    one = jnp.ones((), x.dtype)
    return (one + x) * (one - x)


@decomposition("polynomial")
def polynomial(x, *coefficients, **_):
    shape = jnp.broadcast_shapes(x.shape, *(c.shape for c in coefficients))
    value = jnp.broadcast_to(coefficients[-1], shape)
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value


@decomposition("reciprocal")
def reciprocal(x, **_):
    """A primitive of Pallas, which may be less exact elsewhere."""
    return jnp.ones((), x.dtype) / x


@decomposition("exp2", dtypes=dtypes.NARROW)
@decomposition("exp2", traits=Trait.ELEMENTWISE)
def exp2(x, **_):
    return lax.exp(x * jnp.asarray(np.log(2), x.dtype))


@decomposition("log2")
def log2(x, **_):
    result = lax.log(x)
    if jnp.iscomplexobj(x):
        factor = jnp.asarray(1 / np.log(2), lax.real(result).dtype)
        return lax.complex(lax.real(result) * factor, lax.imag(result) * factor)
    return result * jnp.asarray(1 / np.log(2), x.dtype)


@decomposition("cbrt", traits=Trait.ELEMENTWISE)
def cbrt(x, **_):
    """A power, and one step of Newton's method for the last digits."""
    if x.dtype in (jnp.float16, jnp.bfloat16):
        return lax.cbrt(x.astype(jnp.float32)).astype(x.dtype)
    size = lax.abs(x)
    root = lax.pow(size, jnp.asarray(1 / 3, x.dtype))
    closer = root - (root - size / (root * root)) * jnp.asarray(1 / 3, x.dtype)
    is_fixed = (size == 0) | (size == jnp.inf)
    return jnp.where(is_fixed, x, lax.sign(x) * closer)


def _complex(fun):
    def lower(z, **_):
        return fun(z)

    return lower


for _fun in (
    complex_math.exp,
    complex_math.expm1,
    complex_math.log,
    complex_math.log1p,
    complex_math.sqrt,
    complex_math.rsqrt,
    complex_math.sin,
    complex_math.cos,
    complex_math.logistic,
):
    decomposition(_fun.__name__, dtypes=dtypes.COMPLEX)(_complex(_fun))


# On a branch cut JAX takes a zero for a positive one.
_CUTS = {"asin": "imag", "acos": "imag", "acosh": "imag", "asinh": "real"}


def _with_cut(op, part):
    def lower(ctx, z, **_):
        return emit(
            op, ctx.lower(complex_math.without_negative_zero, z, part=part, avals=ctx.in_avals)
        )

    return lower


for _primitive, _part in _CUTS.items():
    rule(_primitive, dtypes=dtypes.COMPLEX)(_with_cut(_OPS[_primitive], _part))


@rule("atan", dtypes=dtypes.COMPLEX)
def atan_complex(ctx, z, **_):
    return emit("Atan", ctx.lower(complex_math.atan_argument, z, avals=ctx.in_avals))


@rule("atanh", dtypes=dtypes.COMPLEX)
def atanh_complex(ctx, z, **_):
    return emit("Atanh", ctx.lower(complex_math.atanh_argument, z, avals=ctx.in_avals))


@rule("round", traits=Trait.ELEMENTWISE)
def round_(ctx, x, *, rounding_method):
    if rounding_method == lax.RoundingMethod.TO_NEAREST_EVEN:
        return emit("Round", x)
    return ctx.lower(_round_away_from_zero, x, avals=ctx.in_avals)


def _round_away_from_zero(x):
    size = lax.abs(x)
    down = lax.floor(size)
    half = jnp.asarray(0.5, x.dtype)
    return (down + (size - down >= half).astype(x.dtype)) * lax.sign(x)


@decomposition("logistic", dtypes=dtypes.NARROW)
def logistic_narrow(x, **_):
    one = np.ones((), x.dtype)
    return lax.div(jnp.broadcast_to(one, x.shape), one + lax.exp(-x))


@rule("abs", dtypes=dtypes.COMPLEX)
def abs_complex(ctx, x):
    """NaN if either part is, also where the other is infinite."""
    real = x.dtype.real_dtype
    size = emit("ComplexAbs", x, Tout=real)
    return emit("SelectV2", emit("NotEqual", x, x), constant(np.nan, real), size)


@rule("real", traits=Trait.ELEMENTWISE)
def real(ctx, x):
    return emit("Real", x, Tout=x.dtype.real_dtype)


@rule("imag", traits=Trait.ELEMENTWISE)
def imag(ctx, x):
    return emit("Imag", x, Tout=x.dtype.real_dtype)


@rule("conj", traits=Trait.ELEMENTWISE)
def conj(ctx, x, **_):
    if x.dtype.is_complex:
        return emit("Conj", x)
    return emit("Complex", x, constant(0, x.dtype), Tout=dtypes.to_tf(ctx.out_aval.dtype))
