"""The greatest elements along an axis, and their positions."""

import numpy as np
import tensorflow as tf

from lowering.formats import narrow, words
from lowering.ops import cast, constant, dtypes, move
from lowering.registry import Trait, rule
from lowering.targets import CONSUMER, PORTABLE, XLA
from lowering.tensors import movement, ordering

# Besides floats, the dtypes whose values are exact in float32.
_NARROW = (np.bool_, np.int8, np.uint8, np.int16, np.uint16)


@rule("top_k")
def top_k(ctx, x, *, k, axis=-1, **_):
    """Floats are in their total order, with NaN first; equal elements keep their order."""
    keys, positions = ordering.top_k(ordering.total_order(_swap(ctx, x, axis)), ctx.size(k))
    return [_swap(ctx, ordering.from_total_order(keys, x.dtype), axis), _swap(ctx, positions, axis)]


@rule("top_k", target=XLA, dtypes=(*dtypes.FLOAT[:3], *_NARROW))
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
    (keys,) = ordering.natural_keys(_swap(ctx, x, axis))
    values, positions = ordering.top_k(keys, ctx.size(k))
    return [_swap(ctx, cast(values, x.dtype), axis), _swap(ctx, positions, axis)]


@rule("top_k", dtypes=dtypes.NARROW)
def top_k_narrow(ctx, x, **_):
    return narrow.run_on_order(ctx, x)


@rule("top_k", "approx_top_k", target=CONSUMER, dtypes=words.WORDS)
def top_k_words(ctx, x, **_):
    return words.run_on_order(ctx, x)


@rule("approx_top_k", traits=Trait.SELECTS)
def approx_top_k(ctx, x, *, reduction_dimension, is_max_k, **_):
    """The exact result, as in JAX on the CPU; equal elements keep their order."""
    axis = reduction_dimension % x.shape.rank
    moved = _swap(ctx, x, axis)
    keys = ordering.natural_keys if ctx.target.is_natural else ordering.sort_keys
    (key,) = keys(moved)
    if not is_max_k:
        key = ordering.reverse(key)
    _, positions = ordering.top_k(key, ctx.size(ctx.out_avals[0].shape[axis]))
    last = x.shape.rank - 1
    values = move("GatherV2", moved, positions, constant(last, tf.int32), batch_dims=last)
    return [_swap(ctx, values, axis), _swap(ctx, positions, axis)]


def _swap(ctx, x, axis):
    """`x` with an axis and the last one swapped."""
    order = list(range(x.shape.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return movement.transpose(ctx, x, order)
