"""Conversions between dtypes."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.formats import narrow, rounding
from lowering.ops import cast, constant, dtypes, emit
from lowering.registry import Trait, rule


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


def _saturate(x, dtype):
    """Floats as integers, where TensorFlow's cast leaves open what NaN and large numbers give."""
    if x.dtype in (tf.float16, tf.bfloat16):
        x = cast(x, tf.float32)
    info = np.iinfo(dtype.as_numpy_dtype)
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
        # XLA converts the largest number of this format as if it were infinite.
        largest = constant(float(ml_dtypes.finfo(source).max), x.dtype)
        is_largest = emit("Equal", emit("Abs", x), largest)
        x = emit("SelectV2", is_largest, emit("Mul", x, constant(np.inf, x.dtype)), x)
    (result,) = narrow.run_on_held(ctx, x)
    if not dtypes.is_narrow(target):
        return result
    is_inexact = x.dtype.is_floating or x.dtype.is_complex
    return (rounding.clip if is_inexact else rounding.narrow_to)(result, target)
