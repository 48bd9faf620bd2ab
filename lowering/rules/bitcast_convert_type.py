"""The bits of an array as another dtype."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import float_bits, narrow_numbers, uint32_parts
from lowering.arrays import split_conversions as conversions
from lowering.arrays.uint32 import UINT32
from lowering.narrow_formats import NARROW, SHORT, width
from lowering.ops import bitcast, cast, dtypes, kernels
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.rules.uint32_parts import elementwise
from lowering.targets import CONSUMER, ONNX, TFJS

_WIDE = (np.int64, np.uint64, np.float64)


@rule("bitcast_convert_type", traits=Trait.ELEMENTWISE | Trait.OF_BITS)
def bitcast_convert_type(ctx, x, *, new_dtype, **_):
    return bitcast(x, dtypes.to_tf(new_dtype))


@rule(
    "bitcast_convert_type",
    target=CONSUMER,
    dtypes=(*SHORT, np.int32, np.uint32, np.float32),
)
def bitcast_convert_type_consumer(ctx, x, **_):
    """Runtimes without a bitcast compute the bits of floats."""
    source, target = ctx.in_avals[0].dtype, ctx.out_aval.dtype
    to = dtypes.to_tf(target)
    if 8 in (source.itemsize, target.itemsize):
        regroup = _of_wide if source.itemsize == 8 else _to_wide
        return ctx.lower(regroup, x, avals=ctx.in_avals, dtype=target)
    if {source.itemsize, target.itemsize} != {4}:
        return ctx.lower(_through_int32, x, avals=ctx.in_avals, dtype=target)
    if x.dtype == to:
        return x
    if kernels.supports("Bitcast", x.dtype):
        return tf.bitcast(x, to)
    if tf.float32 not in (x.dtype, to):
        return cast(x, to)
    x = cast(x, tf.int32) if x.dtype == tf.uint32 else x
    fun = float_bits.of_bits if to == tf.float32 else float_bits.bits_of
    aval = jax.ShapeDtypeStruct(ctx.in_avals[0].shape, x.dtype.as_numpy_dtype)
    return cast(ctx.lower(fun, x, avals=[aval]), to)


@legalization("bitcast_convert_type", dtypes=SHORT)
@legalization("bitcast_convert_type", dtypes=dtypes.LOW_PRECISION)
def bitcast_convert_type_short(x, *, new_dtype, **_):
    dtype = np.dtype(new_dtype)
    if dtype.itemsize == 8:
        return _to_wide(x, dtype=dtype)
    return (_of_wide if x.dtype.itemsize == 8 else _through_int32)(x, dtype=dtype)


@decomposition("bitcast_convert_type", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def bitcast_convert_type_uint32_tfjs(x, *, new_dtype, **_):
    """All conversions from and to uint32, but those between it and int32."""
    if x.dtype == np.float32:
        return uint32_parts.join(*_PARTS_OF_FLOAT_BITS.bind(x))
    if x.dtype != UINT32:
        return _of_short(x)
    if new_dtype == np.float32:
        return _FLOAT_OF_PARTS.bind(*uint32_parts.split(x))[0]
    return _of_parts(*uint32_parts.split(x), dtype=np.dtype(new_dtype))


_PARTS_OF_FLOAT_BITS = elementwise(
    "parts_of_float_bits", conversions.of_float_bits, traits=Trait.OF_BITS
)
_FLOAT_OF_PARTS = elementwise(
    "float_of_parts",
    lambda *x: conversions.to_float_bits(x),
    [np.float32],
    Trait.OF_BITS,
)


@rule("bitcast_convert_type", target=ONNX, dtypes=_WIDE)
def bitcast_convert_type_wide(ctx, x, **_):
    """ONNX reads bits in dtypes of one size alone."""
    dtype = ctx.out_aval.dtype
    if dtype.itemsize == 8:
        return bitcast(x, dtypes.to_tf(dtype))
    return ctx.lower(_of_wide, x, avals=ctx.in_avals, dtype=dtype)


def _of_wide(x, *, dtype):
    """Numbers of 64 bits as smaller numbers, by their lower and their upper 32 bits."""
    bits = lax.bitcast_convert_type(x, np.uint64)
    parts = bits & np.uint64(0xFFFFFFFF), lax.shift_right_logical(bits, np.uint64(32))
    pair = jnp.stack([part.astype(np.uint32) for part in parts], -1)
    numbers = lax.bitcast_convert_type(pair, dtype)
    return lax.reshape(numbers, (*x.shape, 8 // dtype.itemsize))


def _to_wide(x, *, dtype):
    """The inverse of `_of_wide`."""
    shape, size = x.shape[:-1], 4 // x.dtype.itemsize
    if size > 1:
        x = lax.reshape(x, (*shape, 2, size))
    pair = lax.bitcast_convert_type(x, np.uint32).astype(np.uint64)
    bits = pair[..., 0] | lax.shift_left(pair[..., 1], np.uint64(32))
    return lax.bitcast_convert_type(bits, dtype)


def _of_parts(high, low, *, dtype):
    """uint32, given by its parts, as numbers of 8 or 16 bits."""
    parts = jnp.stack([low, high], -1)
    if dtype.itemsize == 1:
        upper = lax.shift_right_logical(parts, np.int32(8))
        bytes_ = jnp.stack([parts - upper * np.int32(256), upper], -1)
        parts = lax.reshape(bytes_, (*low.shape, 4))
    return _from_int32(parts, dtype)


def _of_short(x):
    """Numbers of 8 or 16 bits as uint32."""
    width = 8 * x.dtype.itemsize
    factors = np.uint32(1) << np.arange(0, 32, width, dtype=np.uint32)
    parts = _to_int32(x).astype(np.uint32) * factors
    return functools.reduce(lax.add, [parts[..., i] for i in range(parts.shape[-1])])


def _through_int32(x, *, dtype):
    """Numbers of 8, 16 or 32 bits as numbers of `dtype`, by arithmetic on int32."""
    width, new_width = 8 * x.dtype.itemsize, 8 * dtype.itemsize
    bits = _to_int32(x)
    if width > new_width:
        amounts = np.arange(0, width, new_width, dtype=np.int32)
        bits = lax.shift_right_logical(
            bits[..., None], jnp.broadcast_to(amounts, (*x.shape, amounts.size))
        )
        bits = bits & np.int32((1 << new_width) - 1)
    elif width < new_width:
        factors = 1 << np.arange(0, new_width, width, dtype=np.int32)
        bits = jnp.sum(bits * factors, -1, dtype=np.int32)
    return _from_int32(bits, dtype)


def _to_int32(x):
    """The bits of numbers as int32, positive where they are fewer than 32."""
    width = 8 * x.dtype.itemsize
    if width == 32:
        return lax.bitcast_convert_type(x, np.int32)
    if jnp.issubdtype(x.dtype, np.floating):
        return float_bits.bits_of_short(x)
    bits = x.astype(np.int32)
    if jnp.issubdtype(x.dtype, np.unsignedinteger):
        return bits
    return jnp.where(bits < 0, bits + np.int32(1 << width), bits)


def _from_int32(bits, dtype):
    """The inverse of `_to_int32`."""
    width = 8 * dtype.itemsize
    if width == 32:
        return lax.bitcast_convert_type(bits, dtype)
    if jnp.issubdtype(dtype, np.floating):
        return float_bits.of_short_bits(bits, dtype)
    if jnp.issubdtype(dtype, np.signedinteger):
        bits = jnp.where(bits < 1 << (width - 1), bits, bits - np.int32(1 << width))
    return bits.astype(dtype)


@on_promoted("bitcast_convert_type", dtypes=NARROW)
def bitcast_convert_type_narrow(x, *, new_dtype, dtypes, storages, **_):
    """Regroups the bits of the numbers, which are stored as uint8."""
    (source,), (storage,) = dtypes, storages
    bits = narrow_numbers.to_bits(x, source) if source in NARROW else x
    dtype = np.dtype(np.uint8) if new_dtype in NARROW else new_dtype
    bits = _regroup(bits, width=width(source), new_width=width(new_dtype), dtype=dtype)
    return narrow_numbers.from_bits(bits, new_dtype, storage) if new_dtype in NARROW else bits


def _regroup(bits, *, width, new_width, dtype):
    """Integers of `width` bits as integers of `new_width` bits, the least significant first.

    Those of eight bits or fewer are stored as uint8. The result is of `dtype`, of the same size.
    """
    part, new_part = min(width, 8), min(new_width, 8)
    if width > 8:
        bits = lax.bitcast_convert_type(bits, np.uint8)
    elif new_width > width:
        bits = lax.reshape(bits, (*bits.shape[:-1], new_width // new_part, new_part // part))
        groups = [
            lax.index_in_dim(bits, i, -1, keepdims=False) << np.uint8(part * i)
            for i in range(new_part // part)
        ]
        bits = functools.reduce(lax.bitwise_or, groups)
        if new_width <= 8:
            bits = lax.squeeze(bits, [bits.ndim - 1])
    if new_width < width:
        size = width // new_width
        shifts = np.arange(0, part, new_part, dtype=np.uint8)
        shape = (*bits.shape[: bits.ndim - (width > 8)], size)
        bits = (bits[..., None] >> shifts) & np.uint8((1 << new_part) - 1)
        bits = lax.reshape(bits, shape)
    return lax.bitcast_convert_type(bits, dtype)
