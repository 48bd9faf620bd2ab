"""Bitwise and logical primitives."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.arrays import bit_counts, narrow_numbers
from lowering.arrays import split_arithmetic as arithmetic
from lowering.narrow_formats import NARROW, SHORT, SIGNED, width
from lowering.ops import cast, dtypes, emit
from lowering.registry import Trait, decomposition, on_promoted, rule
from lowering.rules import uint32_parts
from lowering.rules.unary import register_ops
from lowering.targets import CONSUMER, ONNX, TFJS, TFLITE

_BITWISE = Trait.MONOID | Trait.IN_RANGE

register_ops({"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor"}, traits=_BITWISE)
register_ops({"not": "Invert"})
register_ops(
    {"and": "LogicalAnd", "or": "LogicalOr", "xor": "NotEqual", "not": "LogicalNot"},
    dtypes=dtypes.BOOL,
)


uint32_parts.register(
    {op: functools.partial(arithmetic.bitwise, op) for op in ("and", "or", "xor")}
)
uint32_parts.register({"not": arithmetic.invert})


@on_promoted("not", dtypes=SHORT)
def not_short(x, *, primitive, dtypes, **_):
    if dtypes[0].kind == "i":
        return primitive.bind(x)
    return x.dtype.type(np.iinfo(dtypes[0]).max) - x


@rule("population_count")
def population_count(ctx, x):
    return cast(emit("PopulationCount", x), x.dtype)


@decomposition("population_count", target=CONSUMER, dtypes=(np.int32, np.uint32))
def population_count_of_bytes(x):
    """Runtimes look up bytes faster than they compute with bits, which some of them emulate."""
    return bit_counts.ones(lax.bitcast_convert_type(x, np.int32), bits=32).astype(x.dtype)


@decomposition("population_count", target=ONNX, dtypes=(np.int32,))
def population_count_of_unsigned(x):
    """The standard shifts unsigned integers alone."""
    return lax.population_count(lax.bitcast_convert_type(x, np.uint32)).astype(np.int32)


@decomposition("population_count", target=ONNX, dtypes=(np.uint32,))
@decomposition("population_count", target=TFJS, dtypes=(np.uint32,))
def population_count_in_parallel(x):
    return bit_counts.ones_in_parallel(x)


@decomposition("population_count", target=ONNX, dtypes=(np.int64, np.uint64))
def population_count_wide(x):
    """The number of bits set in the upper 32, plus that in the lower 32."""
    parts = lax.bitcast_convert_type(x, np.uint32)
    return jnp.sum(lax.population_count(parts), -1, dtype=np.uint32).astype(x.dtype)


@decomposition("population_count", target=TFJS, dtypes=(np.int32,))
def population_count_tfjs(x):
    """16 bits at a time, as integers of more than 24 bits are not exact in WebGL."""
    parts = x & np.int32(0xFFFF), lax.shift_right_logical(x, np.int32(16))
    return sum(bit_counts.ones(half, bits=16) for half in parts)


@decomposition("clz", target=TFJS, dtypes=(np.int32,))
def clz_tfjs(x):
    """Negative numbers begin with their sign; the bits below it would be too many for WebGL."""
    return lax.select(x < 0, jnp.zeros_like(x), clz(x))


@on_promoted("population_count", dtypes=SHORT)
def population_count_short(x, *, dtypes, **_):
    return bit_counts.ones(_without_sign(x, dtypes[0]), bits=width(dtypes[0]))


@on_promoted("clz", dtypes=SHORT)
def clz_short(x, *, dtypes, **_):
    return bit_counts.leading_zeros(_without_sign(x, dtypes[0]), bits=width(dtypes[0]))


def _without_sign(x, dtype):
    """The bits of integers, in a wider storage dtype, as numbers that are not negative."""
    if dtype.kind == "u":
        return x
    return narrow_numbers.fit(x, np.dtype(f"u{dtype.name}"), x.dtype)


@decomposition("population_count", target=ONNX, dtypes=SHORT)
def population_count_short_onnx(x):
    """The integers are extended by zeros, not by their sign."""
    bits = x.astype(np.dtype(f"uint{8 * x.dtype.itemsize}")).astype(np.int32)
    return lax.population_count(bits).astype(x.dtype)


@on_promoted("population_count", dtypes=NARROW)
def population_count_narrow(x, *, primitive, dtypes, storages):
    """XLA counts a number of four bits as if it had eight, but one of two bits as it is."""
    (dtype,), (storage,) = dtypes, storages
    if dtype not in SIGNED:
        return primitive.bind(x)
    counted = 2 if width(dtype) == 2 else 8
    if counted < 8 * storage.itemsize:
        x = _lowest(x, counted)
    return narrow_numbers.fit(primitive.bind(x), dtype, storage)


@on_promoted("clz", dtypes=NARROW)
def clz_narrow(x, *, primitive, dtypes, storages):
    (dtype,), (storage,) = dtypes, storages
    if dtype in SIGNED:
        x = _lowest(x, width(dtype))
    count = primitive.bind(x) - x.dtype.type(8 * storage.itemsize - width(dtype))
    return narrow_numbers.fit(count, dtype, storage) if dtype in SIGNED else count


def _lowest(x, bits):
    """The lowest bits of integers, as a number that is not negative."""
    storage = np.dtype(np.uint8) if x.dtype.itemsize == 1 else x.dtype
    return narrow_numbers.fit(x, np.dtype(f"uint{bits}"), storage)


@decomposition("clz")
def clz(x):
    """Sets the bits below the highest set bit too, and counts the bits that are still zero."""
    for exponent in range(np.iinfo(x.dtype).bits.bit_length() - 1):
        x = x | lax.shift_right_logical(x, jnp.asarray(1 << exponent, x.dtype))
    return lax.population_count(~x)


@decomposition("clz", target=TFLITE, dtypes=(np.int32, np.uint32))
def clz_of_bytes(x):
    bits = lax.bitcast_convert_type(x, np.int32)
    return bit_counts.leading_zeros(bits, bits=32).astype(x.dtype)


@decomposition("clz", target=ONNX, dtypes=(np.int32,))
def clz_of_unsigned(x):
    return lax.clz(lax.bitcast_convert_type(x, np.uint32)).astype(np.int32)
