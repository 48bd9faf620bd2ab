"""The greatest elements along an axis, and their positions."""

import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import integers, narrow_numbers
from lowering.narrow_formats import NARROW
from lowering.ops import cast, constant, dtypes, move
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.targets import CONSUMER, ONNX, PORTABLE, TFJS, XLA
from lowering.tensors import movement, ordering

# Besides floats, the dtypes whose values are exact in float32.
_EXACT_IN_FLOAT32 = (np.bool_, np.int8, np.uint8, np.int16, np.uint16)


@rule("top_k", traits=Trait.PROMOTED | Trait.IN_RANGE)
def top_k(ctx, x, *, k, axis=-1, **_):
    """Floats are in their total order, with NaN first; equal elements keep their order."""
    keys, positions = ordering.top_k(ordering.total_order(_swap(ctx, x, axis)), ctx.size(k))
    return [_swap(ctx, ordering.from_total_order(keys, x.dtype), axis), _swap(ctx, positions, axis)]


@rule("top_k", target=XLA, dtypes=(*dtypes.FLOAT[:3], *_EXACT_IN_FLOAT32))
def top_k_xla(ctx, x, *, k, axis=-1, **params):
    """XLA has a fast algorithm for float32 only, which serves all dtypes that are exact in it.

    TensorFlow and XLA order NaN, negative zero and subnormals in different ways. If any of these
    are present, the elements are compared as integers.
    """

    def as_floats():
        values, positions = ordering.top_k(_swap(ctx, cast(x, tf.float32), axis), ctx.size(k))
        return [cast(_swap(ctx, values, axis), x.dtype), _swap(ctx, positions, axis)]

    def as_integers():
        return top_k(ctx, x, k=k, axis=axis, **params)

    if not x.dtype.is_floating:
        return as_floats()
    return tf.cond(ordering.has_unusual(x), as_integers, as_floats)


@rule("top_k", target=PORTABLE, dtypes=dtypes.FLOAT)
def top_k_natural(ctx, x, *, k, axis=-1, **_):
    """NaN comes first, among the infinities."""
    return _of_floats(ctx, x, axis, k)


@rule("top_k", target=CONSUMER, dtypes=(np.int32, np.int64))
def top_k_consumer(ctx, x, *, k, axis=-1, **_):
    return _by_keys(ctx, x, ordering.natural_keys, axis, k)


def _by_keys(ctx, x, keys_of, axis, k, is_least=False):
    """The greatest elements along an axis, or the least, and their positions.

    `keys_of` makes integers or floats in the order of the elements, the most significant first.
    """

    def find(x, shape):
        keys = [ordering.reverse(key) if is_least else key for key in keys_of(x)]
        if len(keys) == 1:
            return ordering.top_k(keys[0], ctx.size(k))[1]
        size = ctx.size(shape[-1])
        steps = movement.broadcast(ctx, tf.range(size), shape)
        (positions,) = ordering.sorted_by(keys, [steps], size)
        return movement.slice_(ctx, positions, shape, [0] * len(shape), [*shape[:-1], k])

    return _at(ctx, x, axis, find)


def _of_floats(ctx, x, axis, k, is_least=False):
    """As `_by_keys`, for natural targets."""
    if ctx.target != TFJS:
        return _by_keys(ctx, x, ordering.natural_top_keys, axis, k, is_least)
    size = ctx.size(k)
    return _at(ctx, x, axis, lambda x, shape: ordering.top_k_by_finite_keys(x, size, is_least))


def _at(ctx, x, axis, find):
    """The elements at the positions along an axis that are found with it as the last one."""
    axis = axis % x.shape.rank
    x, shape = _swap(ctx, x, axis), list(ctx.in_avals[0].shape)
    shape[axis], shape[-1] = shape[-1], shape[axis]
    positions = find(x, shape)
    last = x.shape.rank - 1
    values = move("GatherV2", x, positions, constant(last, tf.int32), batch_dims=last)
    return [_swap(ctx, values, axis), _swap(ctx, positions, axis)]


on_promoted("top_k", dtypes=NARROW)(narrow_numbers.on_order)


@decomposition("top_k", target=ONNX, dtypes=(np.uint64,))
@legalization("top_k", dtypes=dtypes.UNSIGNED_32)
def top_k_unsigned(x, *, k, axis=-1, **_):
    values, positions = lax.top_k(integers.in_signed_order(x), k, axis=axis)
    return integers.from_signed_order(values), positions


@legalization("approx_top_k", dtypes=dtypes.UNSIGNED_32)
def approx_top_k_uint32(x, **params):
    values, positions = lax.approx_top_k_p.bind(integers.in_signed_order(x), **params)
    return integers.from_signed_order(values), positions


@decomposition("top_k", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def top_k_uint32_tfjs(x, *, k, axis=-1, **_):
    return _by_sort(x, axis, k, is_least=False)


@decomposition("approx_top_k", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def approx_top_k_uint32_tfjs(x, *, k, reduction_dimension, is_max_k, **_):
    return _by_sort(x, reduction_dimension, k, is_least=not is_max_k)


def _by_sort(x, axis, k, is_least):
    axis = axis % x.ndim
    key = x if is_least else ~x
    positions = lax.broadcasted_iota(np.int32, x.shape, axis)
    first = (lax.slice_in_dim(y, 0, k, axis=axis) for y in lax.sort((key, positions), axis))
    key, positions = first
    return key if is_least else ~key, positions


@rule("approx_top_k", traits=Trait.SELECTS)
def approx_top_k(ctx, x, *, reduction_dimension, is_max_k, **_):
    """The exact result, as in JAX on the CPU; equal elements keep their order."""
    k, is_least = ctx.out_avals[0].shape[reduction_dimension], not is_max_k
    if ctx.target.is_natural:
        return _of_floats(ctx, x, reduction_dimension, k, is_least)
    return _by_keys(ctx, x, ordering.sort_keys, reduction_dimension, k, is_least)


def _swap(ctx, x, axis):
    """`x` with an axis and the last one swapped."""
    order = list(range(x.shape.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return movement.transpose(ctx, x, order)
