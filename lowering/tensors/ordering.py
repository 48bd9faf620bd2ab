"""Integer keys in the order of JAX values.

All ops and modes of TensorFlow agree on the order of integers. They do not agree on the order of
NaNs, zeros of both signs and subnormals.
"""

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import tensorflow as tf

from lowering import targets
from lowering.ops import bitcast, cast, constant, dtypes, emit, integers, kernels, move


def sort_keys(x: tf.Tensor) -> list[tf.Tensor]:
    """Integers in the order in which JAX sorts `x`: one tensor, or two for complex numbers.

    Zeros of both signs are equal, all NaNs are equal and last, and complex numbers are ordered by
    real part, then by imaginary part. Subnormals are equal to zeros, as the CPU flushes them; but
    not those of float16, which it compares in float32, where they are normal.
    """
    if x.dtype.is_complex:
        return [*sort_keys(tf.math.real(x)), *sort_keys(tf.math.imag(x))]
    if x.dtype == tf.bool:
        return [cast(x, tf.uint8)]
    if not x.dtype.is_floating:
        return [x]
    sign = _sign(bitcast(x, dtypes.signed(x.dtype)))
    absolute = magnitude(x)
    # Negated where the sign bit is set, so that both zeros become 0.
    key = emit("Sub", emit("BitwiseXor", absolute, sign), sign)
    if x.dtype != tf.float16:
        is_small = emit("Less", absolute, _least_normal(x.dtype))
        key = emit("SelectV2", is_small, constant(0, key.dtype), key)
    last = constant(key.dtype.max, key.dtype)
    return [emit("SelectV2", _exceeds_infinity(absolute, x.dtype), last, key)]


def natural_keys(x: tf.Tensor) -> list[tf.Tensor]:
    """Numbers without NaN in the order in which JAX sorts `x`, the most significant first.

    Floats are two, of which the first says whether they are NaN. For other runtimes the numbers are
    floats or integers of at least 32 bits. Where one cannot sort integers, they are groups of 16
    bits of the number in float32.
    """
    if x.dtype.is_complex:
        return [*natural_keys(tf.math.real(x)), *natural_keys(tf.math.imag(x))]
    if x.dtype.is_floating:
        return [cast(emit("IsNan", x), tf.float32), without_nan(x, 0.0)]
    if x.dtype != tf.uint64 and targets.current().has_tensorflow_kernels:
        return [cast(x, tf.uint8) if x.dtype == tf.bool else x]
    if x.dtype == tf.bool:
        return [cast(x, tf.int32)]
    if x.dtype == tf.uint64:
        return [_signed(x)]
    if x.dtype == tf.uint32:
        return [cast(x, tf.int64)]
    if x.dtype.size < 4:
        return [cast(x, tf.int32)]
    return [x] if kernels.supports("TopKV2", x.dtype) else _groups_of_bits(x)


def natural_top_keys(x: tf.Tensor) -> list[tf.Tensor]:
    """As `natural_keys`, but a float is one key, and NaN has that of infinity."""
    return [without_nan(x, np.inf)] if x.dtype.is_floating else natural_keys(x)


def top_k_by_finite_keys(x: tf.Tensor, k: int | tf.Tensor, is_least: bool = False) -> tf.Tensor:
    """The positions of the k greatest floats along the last axis, or of the least, in their order.

    TF.js subtracts keys to compare them, which finds no order of infinities. So there are two
    searches: one for large numbers, with finite keys for infinities and, beyond these, for NaN, and
    one for small numbers, in which all of those have the largest key.
    """
    x = cast(x, tf.float32) if x.dtype.size < 4 else x
    info = np.finfo(x.dtype.as_numpy_dtype)
    bound = 2.0 ** (info.maxexp // 2)
    scaled = emit("RealDiv", x, constant(bound, x.dtype))
    keys = [_finite(x, scaled, bound, 2 * bound), _finite(x, x, info.max, info.max)]
    keys = [reverse(key) for key in keys] if is_least else keys
    (found, of_large), (_, of_small) = (top_k(key, k) for key in keys)
    is_small = emit("Less", emit("Abs", found), constant(1, x.dtype))
    return emit("SelectV2", is_small, of_small, of_large)


def _finite(x, key, largest, of_nan):
    """Keys of floats, with finite ones for infinities and NaN."""
    key = emit("Minimum", key, constant(largest, x.dtype))
    key = emit("Maximum", key, constant(-largest, x.dtype))
    return without_nan(x, of_nan, key)


def without_nan(x: tf.Tensor, number: float, key: tf.Tensor | None = None) -> tf.Tensor:
    """Floats of at least 32 bits, with a number where `x` is NaN: those of `key`, or of `x`."""
    x = cast(x, tf.float32) if x.dtype.size < 4 else x
    return emit("SelectV2", emit("IsNan", x), constant(number, x.dtype), x if key is None else key)


def _groups_of_bits(x):
    size = constant(1 << 16, x.dtype)
    lower: list[tf.Tensor] = []
    for _ in range(x.dtype.size // 2 - 1):
        lower.insert(0, emit("FloorMod", x, size))
        x = emit("FloorDiv", x, size)
    return [cast(group, tf.float32) for group in (x, *lower)]


def reverse(key: tf.Tensor) -> tf.Tensor:
    """Keys in the reversed order; twice, it changes nothing."""
    return emit("Neg" if key.dtype.is_floating else "Invert", key)


def pack(keys: list[tf.Tensor]) -> list[tf.Tensor]:
    """Fewer integer keys of the same lexicographic order: up to 64 bits are packed into one.

    The most significant key comes first.
    """
    packed = [keys[-1]]
    width = 8 * keys[-1].dtype.size
    for key in reversed(keys[:-1]):
        if width + 8 * key.dtype.size > 64:
            packed.insert(0, key)
            width = 8 * key.dtype.size
            continue
        shift = constant(width, tf.int64)
        high = emit("LeftShift", cast(_signed(key), tf.int64), shift)
        packed[0] = emit("BitwiseOr", high, _low_bits(packed[0], width))
        width += 8 * key.dtype.size
    return packed


def total_order(x: tf.Tensor) -> tf.Tensor:
    """Integers in the IEEE 754 total order of floats: -NaN < -inf < -0 < 0 < inf < NaN.

    Booleans become uint8, and integers stay as they are.
    """
    if x.dtype == tf.bool:
        return cast(x, tf.uint8)
    if not x.dtype.is_floating:
        return x
    return _flip_negatives(bitcast(x, dtypes.signed(x.dtype)))


def from_total_order(key: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The values of `dtype` that `total_order` maps to `key`."""
    if not dtype.is_floating:
        return cast(key, dtype)
    return bitcast(_flip_negatives(key), dtype)


def top_k(key: tf.Tensor, k: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The k greatest integers along the last axis in descending order, and their indices.

    Equal integers keep their order, so for k equal to the size of the axis this is a stable sort.
    """
    dtype = key.dtype
    wider = dtypes.wider(dtype)
    if wider is not None and not kernels.supports("TopKV2", dtype):
        key = cast(key, wider)
    k = constant(k, tf.int32) if isinstance(k, int) else k
    found = emit("TopKV2", key, k, sorted=True)
    return cast(found.values, dtype), found.indices


def sorted_by(
    keys: Sequence[tf.Tensor], operands: Sequence[tf.Tensor], size: int | tf.Tensor
) -> list[tf.Tensor]:
    """Arrays sorted stably along their last axis, of `size`.

    The keys are in descending order, the first of them the most significant.
    """
    permutation = None
    for key in reversed(keys):
        _, found = top_k(key if permutation is None else _take(key, permutation), size)
        permutation = found if permutation is None else _take(permutation, found)
    return [_take(x, permutation) for x in operands]


def _take(x, permutation):
    last = x.shape.rank - 1
    return move("GatherV2", x, permutation, constant(last, tf.int32), batch_dims=last)


def has_unusual(x: tf.Tensor) -> tf.Tensor:
    """Whether any float of `x` is NaN, negative zero or subnormal, as a scalar."""
    absolute = magnitude(x)
    bits = bitcast(x, absolute.dtype)
    is_nonzero = emit("NotEqual", bits, constant(0, bits.dtype))
    is_small = emit("LogicalAnd", emit("Less", absolute, _least_normal(x.dtype)), is_nonzero)
    unusual = emit("LogicalOr", is_small, _exceeds_infinity(absolute, x.dtype))
    return emit("Any", unusual, integers(range(x.shape.rank)))


def magnitude(x: tf.Tensor) -> tf.Tensor:
    """The bits of floats without the sign, as signed integers in the order of absolute values."""
    bits = bitcast(x, dtypes.signed(x.dtype))
    return emit("BitwiseAnd", bits, constant(bits.dtype.max, bits.dtype))


def infinity(dtype: tf.DType) -> int:
    """The magnitude of infinity; that of NaN is greater."""
    return int(_bits_of(np.inf, dtype))


def _least_normal(dtype):
    return constant(_bits_of(ml_dtypes.finfo(dtype.as_numpy_dtype).tiny, dtype))


def _bits_of(value, dtype):
    return np.array(value, dtype.as_numpy_dtype).view(dtypes.signed(dtype).as_numpy_dtype)


def _exceeds_infinity(magnitude, dtype):
    return emit("Greater", magnitude, constant(infinity(dtype), magnitude.dtype))


def _sign(bits):
    return emit("RightShift", bits, constant(8 * bits.dtype.size - 1, bits.dtype))


def _flip_negatives(bits):
    """Reverses the order of the negative integers; twice, it changes nothing."""
    low = emit("BitwiseAnd", _sign(bits), constant(bits.dtype.max, bits.dtype))
    return emit("BitwiseXor", bits, low)


def _signed(key):
    """A key as signed integers of its width, in its order."""
    dtype = dtypes.signed(key.dtype)
    if key.dtype == dtype:
        return key
    return emit("BitwiseXor", bitcast(key, dtype), constant(dtype.min, dtype))


def _low_bits(key, width):
    """A key of `width` bits as non-negative int64, in its order."""
    return emit("Sub", cast(_signed(key), tf.int64), constant(-(1 << (width - 1)), tf.int64))
