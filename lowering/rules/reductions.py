"""Reductions by one associative operation, over any axes."""

import functools
import math

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays import integers as order
from lowering.arrays import narrow_numbers, uint32_parts
from lowering.arrays import split_arithmetic as arithmetic
from lowering.arrays.computations import tree_reduce
from lowering.narrow_formats import E8M0, NARROW, SHORT, has_infinity
from lowering.ops import cast, dtypes, emit, integers, kernels
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.targets import ONNX, PORTABLE, TFJS
from lowering.targets.tflite import quirks


@rule("reduce_sum", traits=Trait.LINEAR)
@rule("reduce_prod", traits=Trait.PROMOTED)
def reduce_sum(ctx, x, *, axes, **_):
    """Integers wrap around. Low precision is accumulated in float32 and rounded once."""
    if not axes:
        return x
    op = "Sum" if ctx.eqn.primitive.name == "reduce_sum" else "Prod"
    if x.dtype.as_numpy_dtype in dtypes.LOW_PRECISION:
        return cast(emit(op, cast(x, tf.float32), integers(axes)), x.dtype)
    if ctx.target.is_consumer and not kernels.supports(op, x.dtype):
        return ctx.lower(_reduced_by_steps, x, avals=ctx.in_avals, op=op, axes=tuple(axes))
    return emit(op, x, _positions(ctx, x, axes), modular=True)


def _positions(ctx, x, axes):
    """Axes as a reduction takes them, counted from the last one where others are mistaken."""
    if ctx.target.has(quirks.sums_before_broadcasts):
        axes = [axis - x.shape.rank for axis in axes]
    return integers(axes)


def _reduced_by_steps(x, *, op, axes):
    combine, identity = (lax.add, 0) if op == "Sum" else (lax.mul, 1)
    return _reduction(combine, identity)(x, axes=axes)


@rule("reduce_max", "reduce_min", traits=Trait.PROMOTED)
def reduce_max(ctx, x, *, axes, **_):
    """NaN if any element is NaN; of zeros with different signs either one, as in JAX."""
    if not axes:
        return x
    is_max = ctx.eqn.primitive.name == "reduce_max"
    if x.dtype == tf.bool:
        return emit("Any" if is_max else "All", x, integers(axes))
    op = "Max" if is_max else "Min"
    if not x.dtype.is_floating:
        return emit(op, x, integers(axes))
    dtype = x.dtype
    if dtype.as_numpy_dtype in dtypes.LOW_PRECISION:
        x = cast(x, tf.float32)  # The same result, several times faster.
    # Depending on shape and mode, TensorFlow's Max and Min ignore NaN. Its sums never do, and a sum
    # of signs is NaN only if an element is.
    signs = emit("Sum", emit("Sign", x), integers(axes))
    result = emit("SelectV2", emit("IsNan", signs), signs, emit(op, x, integers(axes)))
    return cast(result, dtype)


@rule("reduce_max", "reduce_min", target=PORTABLE, dtypes=dtypes.FLOAT)
def reduce_max_natural(ctx, x, *, axes, **_):
    op = "Max" if ctx.eqn.primitive.name == "reduce_max" else "Min"
    return emit(op, x, integers(axes)) if axes else x


_OPS = {"reduce_sum": "Sum", "reduce_prod": "Prod", "reduce_max": "Max", "reduce_min": "Min"}


@rule("reduce_keeping_axes", target=PORTABLE)
def reduce_keeping_axes(ctx, x, *, reduction, axes):
    """Reduced axes have size one; see `passes.simplify.keepdims`."""
    return emit(_OPS[reduction], x, _positions(ctx, x, axes), keep_dims=True)


_WIDE = (np.int64, np.uint64)
# The dtypes of which onnxruntime's own sums are wrong: `onnx.quirks.sums_of_large_integers`.
_SUMMED_BY_PRODUCT = (np.int8, np.int16, np.uint8, np.uint16, np.int32, *_WIDE)


@decomposition("reduce_keeping_axes", target=ONNX, dtypes=_WIDE)
def reduce_keeping_axes_wide(x, *, reduction, axes):
    shape = tuple(1 if i in axes else dim for i, dim in enumerate(x.shape))
    return lax.reshape(getattr(lax, reduction)(x, axes), shape)


@decomposition("reduce_sum", target=ONNX, dtypes=_SUMMED_BY_PRODUCT)
def reduce_sum_by_product(x, *, axes, **_):
    """A product with a matrix of ones, which wraps around."""
    if x.dtype.itemsize < 4:
        return lax.reduce_sum(x.astype(np.int32), axes).astype(x.dtype)
    sizes, count = [x.shape[axis] for axis in axes], len(axes)
    if tuple(axes) == tuple(range(count)) and count < x.ndim:  # Nothing is transposed.
        ones = jnp.ones([1, *sizes], x.dtype)
        contracted = tuple(range(1, count + 1)), tuple(axes)
        return lax.squeeze(lax.dot_general(ones, x, (contracted, ((), ()))), [0])
    ones = jnp.ones([*sizes, 1], x.dtype)
    contracted = tuple(axes), tuple(range(count))
    return lax.squeeze(lax.dot_general(x, ones, (contracted, ((), ()))), [x.ndim - len(axes)])


for _reduce in (lax.reduce_max, lax.reduce_min):

    @decomposition(_reduce.__name__, target=ONNX, dtypes=(np.uint64,))
    @legalization(_reduce.__name__, dtypes=dtypes.UNSIGNED_32)
    def reduce_max_unsigned(x, *, axes, reduce=_reduce, **_):
        return order.on_signed_order(reduce, x, axes=axes)


@rule("reduce_mean", target=PORTABLE)
def reduce_mean(ctx, x, *, axes, keepdims):
    return emit("Mean", x, integers(axes), keep_dims=keepdims)


on_promoted("reduce_max", "reduce_min", dtypes=(E8M0,))(narrow_numbers.reduced_from_infinity)


@on_promoted("reduce_max", "reduce_min", dtypes={*NARROW, *SHORT} - {E8M0})
def reduce_max_narrow(x, *, axes, primitive, dtypes, storages, **params):
    """The maximum of no elements is the least number, in formats without infinity a finite one."""
    result = primitive.bind(x, axes=axes, **params)
    sizes = [x.shape[axis] for axis in axes]
    has_elements = all(isinstance(size, int) and size for size in sizes)
    return result if has_elements or has_infinity(*dtypes) else narrow_numbers.clip(result, *dtypes)


def _extremum_uint32_tfjs(reduce, of_nothing, beyond):
    """An extremum by the upper 16 bits, then by the lower 16 bits of the numbers that have these.

    Args:
      reduce: the reduction of int32.
      of_nothing: the result for no elements.
      beyond: an int32 that is never the extremum of the lower 16 bits.
    """

    def extremum(x, *, axes, **_):
        if not axes:
            return x
        if any(x.shape[axis] == 0 for axis in axes):
            shape = [dim for i, dim in enumerate(x.shape) if i not in axes]
            return lax.full(shape, of_nothing, np.uint32)
        high, low = uint32_parts.split(x)
        best = reduce(high, axes)
        beside = high == lax.expand_dims(best, axes)
        return uint32_parts.join(best, reduce(jnp.where(beside, low, np.int32(beyond)), axes))

    return extremum


for _primitive, _extremum in (
    ("reduce_max", _extremum_uint32_tfjs(lax.reduce_max, 0, -1)),
    ("reduce_min", _extremum_uint32_tfjs(lax.reduce_min, (1 << 32) - 1, uint32_parts.BASE)),
):
    decomposition(_primitive, target=TFJS, dtypes=dtypes.UNSIGNED_32)(_extremum)


@decomposition("reduce_sum", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def reduce_sum_uint32_tfjs(x, *, axes, **_):
    if not axes:
        return x
    count = math.prod(x.shape[axis] for axis in axes)
    if not avals.is_at_most(count, arithmetic.MOST_SUMMED):
        return _reduced_by_steps(x, op="Sum", axes=tuple(axes))
    fun = functools.partial(lax.reduce_sum, axes=axes)
    return uint32_parts.join(*arithmetic.sum_by(fun, uint32_parts.split(x), count))


@rule("reduce_or", "reduce_and", dtypes=dtypes.BOOL)
def reduce_or(ctx, x, *, axes, **_):
    op = "Any" if ctx.eqn.primitive.name == "reduce_or" else "All"
    return emit(op, x, integers(axes)) if axes else x


@decomposition("reduce_xor", dtypes=dtypes.BOOL)
def reduce_xor(x, *, axes, **_):
    """Whether the number of true elements is odd."""
    return lax.reduce_sum(lax.convert_element_type(x, np.int32), axes) % 2 == 1


def _reduction(op, identity):
    """A decomposition of a reduction by an operation that TensorFlow cannot reduce by."""

    def reduce(x, *, axes, **_):
        def combine(rank):
            return lambda a, b: [op(*a, *b)]

        return tree_reduce(combine, [x], [np.array(identity).astype(x.dtype)], axes)[0]

    return reduce


legalization("reduce_prod", dtypes=dtypes.COMPLEX)(_reduction(lax.mul, 1))
decomposition("reduce_prod", target=TFJS, dtypes=dtypes.UNSIGNED_32)(_reduction(lax.mul, 1))
decomposition("reduce_prod", target=ONNX, dtypes=_WIDE)(_reduction(lax.mul, 1))
decomposition("reduce_max", dtypes=dtypes.COMPLEX)(_reduction(lax.max, -np.inf))
decomposition("reduce_min", dtypes=dtypes.COMPLEX)(_reduction(lax.min, np.inf))
decomposition("reduce_or")(_reduction(lax.bitwise_or, 0))
decomposition("reduce_and")(_reduction(lax.bitwise_and, -1))
decomposition("reduce_xor")(_reduction(lax.bitwise_xor, 0))
