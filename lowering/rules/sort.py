"""Sorting along one dimension, by any number of keys."""

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from lowering.formats import narrow
from lowering.ops import cast, constant, dtypes, emit, move
from lowering.registry import rule
from lowering.targets import XLA
from lowering.tensors import movement, ordering


@rule("sort")
def sort(ctx, *operands, dimension, num_keys, **_):
    """Always stable.

    One key is a stable descending sort of its complement by TopKV2. Of several keys as many as fit
    are packed into 64 bits; from the least significant pack to the most significant, each is
    sorted in the order that the former have left.
    """
    rank = operands[0].shape.rank
    size = ctx.size(ctx.in_avals[0].shape[dimension])
    if rank > 1 and dimension != rank - 1:
        order = [*range(dimension), *range(dimension + 1, rank), dimension]
        moved = [movement.transpose(ctx, x, order) for x in operands]
        results = _sort_last(moved, num_keys, size)
        return [movement.transpose(ctx, y, np.argsort(order)) for y in results]
    return _sort_last(operands, num_keys, size)


@rule("sort", target=XLA, dtypes=dtypes.INTEGER)
def sort_xla(ctx, *operands, dimension, num_keys, **params):
    """A single operand, whose equal elements are indistinguishable, has a faster sort in XLA."""
    rank = operands[0].shape.rank
    if len(operands) > 1 or dimension != rank - 1:
        return sort(ctx, *operands, dimension=dimension, num_keys=num_keys, **params)
    return [gen_xla_ops.xla_sort(input=operands[0])]


@rule("sort", dtypes=dtypes.NARROW)
def sort_narrow(ctx, *operands, **_):
    return narrow.run_on_order(ctx, *operands)


def _sort_last(operands, num_keys, size):
    keys = ordering.pack([key for x in operands[:num_keys] for key in ordering.sort_keys(x)])
    if len(operands) == 1 and _is_its_own_key(operands[0]):
        descending, _ = ordering.top_k(emit("Invert", keys[0]), size)
        return [cast(emit("Invert", descending), operands[0].dtype)]
    permutation = None
    for key in reversed(keys):
        complement = emit("Invert", key if permutation is None else _take(key, permutation))
        _, found = ordering.top_k(complement, size)
        permutation = found if permutation is None else _take(permutation, found)
    return [_take(x, permutation) for x in operands]


def _is_its_own_key(x):
    """Whether equal keys are equal values, to the bit."""
    return not (x.dtype.is_floating or x.dtype.is_complex)


def _take(x, permutation):
    last = x.shape.rank - 1
    return move("GatherV2", x, permutation, constant(last, tf.int32), batch_dims=last)
