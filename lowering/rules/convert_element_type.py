"""Conversions between dtypes."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals, narrow_formats
from lowering.arrays import complex_math, exact, narrow_numbers, uint32, uint32_parts
from lowering.arrays import split_conversions as conversions
from lowering.arrays.uint32 import INT32, UINT32
from lowering.arrays.uint32_parts import BASE
from lowering.ops import cast, constant, dtypes, emit
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.rules.uint32_parts import elementwise
from lowering.targets import PORTABLE, TFJS


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
        return saturate(x, dtype)
    return cast(x, dtype)


@legalization("convert_element_type", dtypes=dtypes.COMPLEX)
def convert_element_type_of_parts(x, *, new_dtype, **_):
    if not avals.is_complex(new_dtype):
        return lax.convert_element_type(lax.real(x), new_dtype)
    dtype = avals.real_dtype(new_dtype)
    if not jnp.iscomplexobj(x):
        # Converted here, as float8_e8m0fnu has no zero for an imaginary part.
        x = lax.convert_element_type(x, dtype)
    return lax.complex(*(lax.convert_element_type(x, dtype) for x in complex_math.parts(x)))


@legalization("convert_element_type", dtypes=dtypes.UNSIGNED_32)
def convert_element_type_uint32(x, *, new_dtype, **_):
    """All conversions from and to uint32, but those between it and int32, which change no bit."""
    if x.dtype != UINT32:
        is_float = jnp.issubdtype(x.dtype, np.floating)
        return uint32.of_bits(_saturated_bits(x) if is_float else x.astype(INT32))
    bits = uint32.bits_of(x)
    if new_dtype == np.bool_ or jnp.issubdtype(new_dtype, np.integer):
        if np.dtype(new_dtype).itemsize < 8:
            return bits.astype(new_dtype)
        number = bits.astype(np.int64)
        return jnp.where(bits < 0, number + np.int64(1 << 32), number).astype(new_dtype)
    wide = np.dtype(np.float64 if new_dtype == np.float64 else np.float32)
    low = exact.remainder(bits, BASE)
    high = exact.remainder(exact.quotient(bits, BASE), BASE)
    return (high.astype(wide) * wide.type(BASE) + low.astype(wide)).astype(new_dtype)


def _saturated_bits(x):
    """The bits of uint32 from floats; from 2^31 on, the highest bit is set after the conversion."""
    bit, zero = 1 << 31, jnp.zeros((), x.dtype)
    is_high = x >= bit
    low = lax.max(jnp.where(is_high, x - bit, x), zero).astype(INT32)
    bits = jnp.where(is_high, low + INT32.type(-bit), low)
    return jnp.where(x >= 2 * bit, INT32.type(-1), bits)


_PARTS_OF_FLOAT = elementwise("parts_of_float", conversions.of_float32)


@decomposition("convert_element_type", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def convert_element_type_uint32_tfjs(x, *, new_dtype, **_):
    """All conversions from and to uint32, but those between it and int32, which change no bit."""
    if x.dtype != UINT32:
        return _to_uint32_tfjs(x)
    high, low = uint32_parts.split(x)
    if new_dtype == np.bool_:
        return (high + low).astype(np.bool_)
    is_integer = jnp.issubdtype(new_dtype, np.integer)
    if is_integer and narrow_formats.width(new_dtype) <= 16:
        return low.astype(new_dtype)
    is_wide = np.dtype(new_dtype).itemsize == 8
    wide = np.dtype(new_dtype if is_wide else np.float32)
    return (high.astype(wide) * wide.type(BASE) + low.astype(wide)).astype(new_dtype)


def _to_uint32_tfjs(x):
    if jnp.issubdtype(x.dtype, np.floating):
        return uint32_parts.join(*_PARTS_OF_FLOAT.bind(x.astype(np.float32)))
    if x.dtype == np.bool_ or jnp.issubdtype(x.dtype, np.unsignedinteger):
        return uint32_parts.of_short(x)
    return x.astype(INT32).astype(UINT32)


@rule("to_integers", target=PORTABLE)
def to_integers(ctx, x, *, dtype):
    return cast(x, dtypes.to_tf(dtype))


def saturate(x, dtype, limits=None):
    """Floats as integers: NaN gives 0, and a number out of range gives the nearest integer.

    TensorFlow's cast does not specify what these give.

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


@on_promoted("convert_element_type", dtypes=(narrow_formats.E8M0, narrow_formats.FLOAT4))
def convert_element_type_narrow(x, *, new_dtype, dtypes, storages, **_):
    """Conversions from formats in which some numbers are not what they are in float32."""
    (source,), (storage,) = dtypes, storages
    if source == narrow_formats.E8M0 and new_dtype == np.bool_:
        return lax.full_like(x, True, np.bool_)
    if source == narrow_formats.E8M0 and new_dtype in (np.float64, np.complex128):
        # The least power of two is subnormal in float32, where TensorFlow takes it for zero.
        x = narrow_numbers.from_bits(
            narrow_numbers.to_bits(x, source), source, np.dtype(np.float64)
        )
    if source == narrow_formats.FLOAT4 and jnp.issubdtype(new_dtype, np.integer):
        x = _with_infinity(x)
    if new_dtype not in narrow_formats.NARROW:
        return lax.convert_element_type(x, new_dtype)
    return narrow_numbers.fit(x, new_dtype, storage)


def _with_infinity(x):
    """Numbers of float4 as XLA converts them to integers: the largest as if it were infinite."""
    is_largest = lax.abs(x) == float(ml_dtypes.finfo(narrow_formats.FLOAT4).max)
    return lax.select(is_largest, x * np.float32(np.inf), x)
