"""Conversions between dtypes."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals, jax_compat, targets
from lowering.arrays import complex_math
from lowering.formats import halves, narrow, rounding, words
from lowering.ops import cast, constant, dtypes, emit
from lowering.ops.values import tensor
from lowering.registry import Trait, legalization, rule
from lowering.targets import CONSUMER
from lowering.tensors import halves as arithmetic


@rule("convert_element_type", traits=Trait.ELEMENTWISE)
def convert_element_type(ctx, x, *, new_dtype, **_):
    """Complex numbers lose their imaginary part, even where they become bool.

    From floats to integers, NaN gives zero and values out of range saturate.
    """
    dtype = dtypes.to_tf(new_dtype)
    if x.dtype == dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        x = emit("Real", x, Tout=x.dtype.real_dtype)
    if x.dtype.is_floating and dtype.is_integer:
        return _saturate(x, dtype)
    return cast(x, dtype)


@legalization("convert_element_type", dtypes=dtypes.COMPLEX)
def convert_element_type_of_parts(x, *, new_dtype, **_):
    if not avals.is_complex(new_dtype):
        return lax.convert_element_type(lax.real(x), new_dtype)
    dtype = avals.real_dtype(new_dtype)
    return lax.complex(*(lax.convert_element_type(x, dtype) for x in complex_math.parts(x)))


@rule("convert_element_type", target=CONSUMER, dtypes=words.HELD)
def convert_element_type_consumer(ctx, x, *, new_dtype, **_):
    """From the dtype that holds the values to that which holds the results, rounded once."""
    source, target = ctx.in_avals[0].dtype, ctx.out_aval.dtype
    to = dtypes.to_tf(target)
    if source == dtypes.FLOAT4 and to.is_integer:
        x = _with_infinity(x)
    if source == dtypes.WORD and target != dtypes.WORD:
        x = _from_words(x, target)
    if x.dtype.is_floating and to.is_integer:
        if target == dtypes.WORD:
            return _saturate_word(x)
        return _saturate(x, to, ml_dtypes.iinfo(target))
    if x.dtype == tf.bool and target == dtypes.WORD and targets.current().splits(dtypes.WORD):
        return halves.joined(arithmetic.ZERO, cast(x, to))
    result = cast(x, to)
    return rounding.narrow_to(result, target) if dtypes.is_narrow(target) else result


@rule("to_integers", target=CONSUMER)
def to_integers(ctx, x, *, dtype):
    return cast(x, dtypes.to_tf(dtype))


def _from_words(x, target):
    """Words as int32 or float32 numbers, or int64 where those may not do, to be converted."""
    if dtypes.to_tf(target).size == 8:
        return emit("FloorMod", cast(x, tf.int64), constant(1 << 32, np.int64))
    if not (target == np.bool_ or jnp.issubdtype(target, np.integer)):
        return arithmetic.to_float32(halves.of(x))
    if not targets.current().splits(dtypes.WORD):
        return x
    high, low = halves.of(x)
    if target == np.bool_:
        return emit("AddV2", tensor(high), tensor(low))
    return tensor(low) if rounding.width(target) <= 16 else arithmetic.to_int32((high, low))


def _saturate_word(x):
    """Floats as uint32: what int32 does not hold is converted without the highest bit."""
    if targets.current().splits(dtypes.WORD):
        return halves.joined(*arithmetic.of_float32(x))
    bit = 1 << 31
    is_high = emit("GreaterEqual", x, constant(float(bit), x.dtype))
    low = emit("SelectV2", is_high, emit("Sub", x, constant(float(bit), x.dtype)), x)
    words_of_low = _saturate(emit("Maximum", low, constant(0.0, x.dtype)), tf.int32)
    high = emit("AddV2", words_of_low, constant(-bit, np.int32))
    is_above = emit("GreaterEqual", x, constant(2.0 * bit, x.dtype))
    return emit(
        "SelectV2", is_above, constant(-1, np.int32), emit("SelectV2", is_high, high, words_of_low)
    )


def _saturate(x, dtype, limits=None):
    """Floats as integers, where TensorFlow's cast leaves open what NaN and large numbers give.

    `limits` are those of the integers, if they are narrower than `dtype`.
    """
    if x.dtype in (tf.float16, tf.bfloat16):
        x = cast(x, tf.float32)
    info = limits or np.iinfo(dtype.as_numpy_dtype)
    kind = x.dtype.as_numpy_dtype
    highest = kind(info.max)
    if int(highest) > info.max:
        highest = np.nextafter(highest, kind(0))
    number = emit("SelectV2", emit("Equal", x, x), x, constant(0, x.dtype))
    raised = emit("Maximum", number, constant(info.min, x.dtype))
    result = cast(emit("Minimum", raised, constant(highest, x.dtype)), dtype)
    if int(highest) == info.max:
        return result
    above = emit("Greater", x, constant(highest, x.dtype))
    return emit("SelectV2", above, constant(info.max, dtype), result)


@rule("convert_element_type", dtypes=dtypes.NARROW)
def convert_element_type_narrow(ctx, x, **_):
    """Rounds once; from floats to integers NaN gives zero and values out of range saturate."""
    source, target = ctx.in_avals[0].dtype, ctx.out_aval.dtype
    if target in dtypes.NARROW_FLOAT:
        if x.dtype.is_complex:
            x = emit("Real", x, Tout=x.dtype.real_dtype)
        return rounding.narrow_to(x if x.dtype == tf.float64 else cast(x, tf.float32), target)
    if source == dtypes.E8M0 and target in (np.bool_, np.float64, np.complex128):
        # The least power of two is subnormal in float32, where TensorFlow takes it for zero.
        double = np.dtype(np.float64)
        numbers = rounding.decode(rounding.to_bits(x, source), source, double)
        eqn = jax_compat.replace_dtypes(ctx.eqn, lambda d: double if d == source else d)
        return ctx.equation(eqn, numbers)[0]
    if source == dtypes.FLOAT4 and jnp.issubdtype(target, np.integer):
        x = _with_infinity(x)
    (result,) = narrow.run_on_held(ctx, x)
    if not dtypes.is_narrow(target):
        return result
    is_inexact = x.dtype.is_floating or x.dtype.is_complex
    return (rounding.clip if is_inexact else rounding.narrow_to)(result, target)


def _with_infinity(x):
    """Numbers of float4 as XLA converts them to integers: the largest as if it were infinite."""
    largest = constant(float(ml_dtypes.finfo(dtypes.FLOAT4).max), x.dtype)
    is_largest = emit("Equal", emit("Abs", x), largest)
    return emit("SelectV2", is_largest, emit("Mul", x, constant(np.inf, x.dtype)), x)
