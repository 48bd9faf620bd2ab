"""Elementwise primitives of one operand."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.arrays import complex_inverse, complex_math
from lowering.arrays import split_arithmetic as arithmetic
from lowering.narrow_formats import NARROW
from lowering.ops import constant, dtypes, emit
from lowering.ops.substitutes.angles import cosine, sine
from lowering.ops.substitutes.exponentials import exponential, logarithm
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.rules import uint32_parts
from lowering.targets import ONNX, PORTABLE, TF, TFLITE


def register_ops(ops, *, modular=False, target=TF, dtypes=None, traits=Trait.NONE):
    """Registers rules of elementwise primitives that are one TensorFlow op each.

    Args:
      ops: the op of each primitive, by name.
      modular: as for `emit`.
      target, dtypes: as for `rule`.
      traits: of the primitives, besides being elementwise.
    """
    for primitive, op in ops.items():
        rule(primitive, target=target, dtypes=dtypes, traits=Trait.ELEMENTWISE | traits)(
            lambda ctx, *operands, op=op, **_: emit(op, *operands, modular=modular)
        )


_SAME_NAME = (
    "abs floor ceil square sqrt rsqrt exp expm1 log log1p "
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
).split()
_OPS = {name: name.capitalize() for name in _SAME_NAME}

register_ops(_OPS)
register_ops({"is_finite": "IsFinite", "logistic": "Sigmoid"})
register_ops({"neg": "Neg"}, modular=True, traits=Trait.LINEAR)


@rule("square", target=TFLITE, dtypes=dtypes.WIDE_FLOAT, traits=Trait.ELEMENTWISE)
def square_tflite(ctx, x):
    """A product, which is quantized; see `tflite.quirks.squares_in_floats`."""
    return emit("Mul", x, x)


@rule("rsqrt", target=TFLITE, dtypes=dtypes.WIDE_FLOAT, traits=Trait.ELEMENTWISE)
def rsqrt_tflite(ctx, x, **_):
    """See `tflite.runtime_quirks.inverse_root_of_zero`.

    Of a quotient the converter makes `Rsqrt` again.
    """
    return emit("Reciprocal", emit("Sqrt", x))


register_ops({"rsqrt_of_positive": "Rsqrt"}, target=PORTABLE)


@rule("sign", traits=Trait.ELEMENTWISE | Trait.IN_RANGE)
def sign(ctx, x):
    """The sign of a zero is the zero itself."""
    result = emit("Sign", x)
    if not x.dtype.is_floating:
        return result
    zero = constant(0, x.dtype)
    return emit("SelectV2", emit("Equal", x, zero), emit("Mul", x, zero), result)


register_ops({"sign": "Sign"}, target=PORTABLE, dtypes=dtypes.FLOAT)


@rule("sign", dtypes=dtypes.UNSIGNED)
def sign_unsigned(ctx, x):
    return emit("Minimum", x, constant(1, x.dtype))


legalization("sign", dtypes=dtypes.UNSIGNED_32)(lambda x: (x != 0).astype(x.dtype))
legalization("abs", dtypes=dtypes.UNSIGNED_32)(lambda x: x)
uint32_parts.register(
    {"neg": lambda x: arithmetic.subtract((arithmetic.ZERO, arithmetic.ZERO), x)},
)


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
    """A primitive of Pallas, which permits approximations; this is none."""
    return jnp.ones((), x.dtype) / x


@decomposition("exp2", dtypes=NARROW)
@decomposition("exp2", traits=Trait.ELEMENTWISE)
def exp2(x, **_):
    return lax.exp(x * jnp.asarray(np.log(2), x.dtype))


@rule("exp2", target=TFLITE, dtypes=(np.float32,))
def exp2_tflite(ctx, x, **_):
    """See `tflite.runtime_quirks.digits_of_large_exponentials`."""
    return exponential(emit("Mul", x, constant(np.log(2), x.dtype)))


@decomposition("log2", traits=Trait.ELEMENTWISE)
def log2(x, **_):
    result = lax.log(x)
    factor = jnp.asarray(1 / np.log(2), jnp.real(x).dtype)
    if jnp.iscomplexobj(x):
        return lax.complex(lax.real(result) * factor, lax.imag(result) * factor)
    return result * factor


@rule("log2", target=TFLITE, dtypes=(np.float32,))
def log2_tflite(ctx, x, **_):
    """See `tflite.runtime_quirks.digits_of_logarithms_near_one`."""
    return emit("Mul", logarithm(x), constant(1 / np.log(2), x.dtype))


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


for _fun in (
    complex_math.exp,
    complex_math.expm1,
    complex_math.log,
    complex_math.log1p,
    complex_math.sqrt,
    complex_math.square,
    complex_math.rsqrt,
    complex_math.sin,
    complex_math.cos,
    complex_math.logistic,
):
    decomposition(_fun.__name__, dtypes=dtypes.COMPLEX)(lambda z, fun=_fun, **_: fun(z))


# TensorFlow's ops give JAX's results on branch cuts, if they are applied to these functions of z.
_ON_BRANCH_CUT = {
    "asin": functools.partial(complex_math.without_negative_zero, part="imag"),
    "acos": functools.partial(complex_math.without_negative_zero, part="imag"),
    "asinh": functools.partial(complex_math.without_negative_zero, part="real"),
    "acosh": functools.partial(complex_math.without_negative_zero, part="imag"),
    "atan": complex_math.atan_argument,
    "atanh": complex_math.atanh_argument,
}
for _primitive, _argument in _ON_BRANCH_CUT.items():
    rule(_primitive, dtypes=dtypes.COMPLEX)(
        lambda ctx, z, op=_OPS[_primitive], argument=_argument, **_: emit(
            op, ctx.lower(argument, z, avals=ctx.in_avals)
        )
    )


for _fun in (
    complex_math.sinh,
    complex_math.cosh,
    complex_math.tan,
    complex_math.tanh,
    complex_inverse.asin,
    complex_inverse.acos,
    complex_inverse.atan,
    complex_inverse.asinh,
    complex_inverse.acosh,
    complex_inverse.atanh,
):
    legalization(_fun.__name__, dtypes=dtypes.COMPLEX)(lambda z, fun=_fun, **_: fun(z))


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


for _primitive, _fun in (("sin", sine), ("cos", cosine)):
    rule(_primitive, target=ONNX, dtypes=(np.float64,), traits=Trait.ELEMENTWISE)(
        lambda ctx, x, fun=_fun, **_: fun(x)
    )


@decomposition("tan", target=ONNX, dtypes=(np.float64,))
def tan_of_double(x, **_):
    return lax.sin(x) / lax.cos(x)


@rule("logistic", target=ONNX, dtypes=(np.float64,), traits=Trait.ELEMENTWISE)
def logistic_of_double(ctx, x, **_):
    """By ops, as a decomposition would be found to be a logistic function again.

    See `onnx.quirks.logistic_of_small_doubles`.
    """
    one = constant(1, np.float64)
    return emit("RealDiv", one, emit("AddV2", one, emit("Exp", emit("Neg", x))))


@decomposition("logistic", dtypes=NARROW)
def logistic_narrow(x, **_):
    one = np.ones((), x.dtype)
    return lax.div(jnp.broadcast_to(one, x.shape), one + lax.exp(-x))


@rule("abs", dtypes=dtypes.COMPLEX)
def abs_complex(ctx, x):
    """NaN if either part is NaN, even if the other is infinite."""
    real = x.dtype.real_dtype
    size = emit("ComplexAbs", x, Tout=real)
    return emit("SelectV2", emit("NotEqual", x, x), constant(np.nan, real), size)


legalization("abs", dtypes=dtypes.COMPLEX)(complex_math.size)
decomposition("size_of_parts", target=PORTABLE)(complex_math.size_of_parts)


@legalization("conj", dtypes=dtypes.COMPLEX)
def conj_of_parts(x, **_):
    real, imag = complex_math.parts(x)
    return lax.complex(real, -imag if jnp.iscomplexobj(x) else imag)


for _primitive, _op in {"real": "Real", "imag": "Imag"}.items():
    rule(_primitive, traits=Trait.ELEMENTWISE)(
        lambda ctx, x, op=_op: emit(op, x, Tout=x.dtype.real_dtype)
    )


@rule("conj", traits=Trait.ELEMENTWISE)
def conj(ctx, x, **_):
    if x.dtype.is_complex:
        return emit("Conj", x)
    return emit("Complex", x, constant(0, x.dtype), Tout=dtypes.to_tf(ctx.out_aval.dtype))
