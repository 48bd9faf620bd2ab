"""The position of the greatest or least element along an axis."""

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import integers as order
from lowering.arrays import narrow_numbers
from lowering.narrow_formats import E8M0
from lowering.ops import cast, constant, dtypes, emit, integers, values
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.targets import ONNX, PORTABLE, TFJS, XLA
from lowering.targets.tflite import quirks


@rule("argmax", "argmin", traits=Trait.PROMOTED)
def argmax(ctx, x, *, axes, index_dtype, **_):
    """The first of equal elements; the first NaN, if there is one."""
    if x.dtype.is_floating:
        return _first_extremum(ctx, x, axes=axes, index_dtype=index_dtype)
    op = "ArgMax" if ctx.eqn.primitive.name == "argmax" else "ArgMin"
    index = emit(op, x, integers(axes[0]), output_type=tf.int64)
    return cast(index, dtypes.to_tf(index_dtype))


@rule("argmax", "argmin", target=XLA)
def argmax_xla(ctx, x, **params):
    """XLA compiles ArgMax to one reduction of pairs, which takes longer than two reductions."""
    return (argmax if x.dtype == tf.bool else _first_extremum)(ctx, x, **params)


@rule("argmax", "argmin", target=PORTABLE, dtypes=(*dtypes.FLOAT, *dtypes.INTEGER))
def argmax_natural(ctx, x, *, axes, index_dtype, **_):
    op = "ArgMax" if ctx.eqn.primitive.name == "argmax" else "ArgMin"
    output = np.int32 if np.dtype(index_dtype).itemsize <= 4 else np.int64
    axis = constant(axes[0], np.int64 if _is_of_softmax(ctx, x) else np.int32)
    index = emit(op, x, axis, output_type=dtypes.to_tf(output))
    return cast(index, dtypes.to_tf(index_dtype))


# What is divided or subtracted last where a program computes a softmax, or its logarithm, itself.
_NORMALIZERS = {"RealDiv": "Sum", "Sub": "Log"}


def _is_of_softmax(ctx, x):
    """Whether the operand is a softmax, which a converter leaves out before an axis of 32 bits."""
    if not ctx.target.has(quirks.positions_before_softmax):
        return False
    source = values.source(x)
    if source is None or source.type in ("LogSoftmax", "Softmax"):
        return source is not None
    if source.type not in _NORMALIZERS:
        return False
    normalizer = values.unshaped(source.inputs[1])
    return values.operand_of(normalizer, _NORMALIZERS[source.type]) is not None


on_promoted("argmax", "argmin", dtypes=(E8M0,))(narrow_numbers.reduced_from_infinity)


for _find in (lax.argmax, lax.argmin):

    @decomposition(_find.__name__, target=ONNX, dtypes=(np.uint64,))
    @legalization(_find.__name__, dtypes=dtypes.UNSIGNED_32)
    def argmax_unsigned(x, *, axes, index_dtype, find=_find):
        """The operand or the index is uint32."""
        if jnp.issubdtype(x.dtype, np.unsignedinteger):
            x = order.in_signed_order(x)
        found = np.int32 if index_dtype == dtypes.UINT32 else index_dtype
        return find(x, axes[0], found).astype(index_dtype)


for _find, _reduce in ((lax.argmax, lax.reduce_max), (lax.argmin, lax.reduce_min)):

    @decomposition(_find.__name__, target=TFJS, dtypes=dtypes.UNSIGNED_32)
    def argmax_uint32_tfjs(x, *, axes, index_dtype, find=_find, reduce=_reduce):
        """The first position of the extremum; the operand or the index is uint32."""
        (axis,) = axes
        if x.dtype != dtypes.UINT32:
            return find(x, axis, np.int32).astype(index_dtype)
        best = lax.expand_dims(reduce(x, (axis,)), (axis,))
        positions = lax.broadcasted_iota(np.int32, x.shape, axis)
        last = np.int32(np.iinfo(np.int32).max)
        return lax.reduce_min(jnp.where(x == best, positions, last), (axis,)).astype(index_dtype)


def _first_extremum(ctx, x, *, axes, index_dtype, **_):
    """The lowest position of a NaN, else of an element that equals the extremum."""
    (axis,) = axes
    if x.dtype.as_numpy_dtype in dtypes.LOW_PRECISION:
        x = cast(x, tf.float32)  # The same order, and several times faster.
    elif x.dtype == tf.bool:
        x = cast(x, tf.uint8)
    op = "Max" if ctx.eqn.primitive.name == "argmax" else "Min"
    extremum = emit(op, x, integers(axes), keep_dims=True)
    size = ctx.size(ctx.in_avals[0].shape[axis])
    position = tf.range(size)
    if isinstance(size, int):
        position, size = constant(range(size), tf.int32), constant(size, tf.int32)
    shape = integers([-1] + [1] * (x.shape.rank - axis - 1))
    along_axis = tf.reshape(position, shape)
    none = constant(tf.int32.max, tf.int32)
    index = emit("SelectV2", emit("Equal", x, extremum), along_axis, none)
    if not x.dtype.is_floating:
        return cast(emit("Min", index, integers(axes)), dtypes.to_tf(index_dtype))
    # The positions of NaNs, minus the size, are less than all others until the remainder is taken.
    of_nan = tf.reshape(position - size, shape)
    index = emit("SelectV2", emit("NotEqual", x, x), of_nan, index)
    index = emit("FloorMod", emit("Min", index, integers(axes)), size)
    return cast(index, dtypes.to_tf(index_dtype))
