"""Sorting along one dimension, by any number of keys."""

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from lowering import avals
from lowering.formats import narrow, pairs, words
from lowering.ops import cast, dtypes, emit
from lowering.registry import rule
from lowering.targets import CONSUMER, PORTABLE, XLA
from lowering.tensors import movement, ordering


@rule("sort")
def sort(ctx, *operands, dimension, num_keys, **_):
    """Always stable.

    A key is sorted by TopKV2, which is stable and descending, of its complement. As many keys as
    fit into 64 bits are packed into one. If several remain, a stable sort by each of them, from the
    least significant one on, sorts by all.
    """
    return _along_last(ctx, operands, dimension, num_keys, _sort_last)


@rule(
    "sort",
    target=PORTABLE,
    dtypes=(*dtypes.FLOAT, *dtypes.COMPLEX, *dtypes.INTEGER, *dtypes.BOOL),
)
def sort_natural(ctx, *operands, dimension, num_keys, **_):
    """Numbers are their own keys; subnormals are told from zeros."""
    return _along_last(ctx, operands, dimension, num_keys, _sort_last_natural)


def _along_last(ctx, operands, dimension, num_keys, sort_last):
    size = ctx.size(ctx.in_avals[0].shape[dimension])
    order = [i for i in range(operands[0].shape.rank) if i != dimension] + [dimension]
    moved = [movement.transpose(ctx, x, order) for x in operands]
    results = sort_last(moved, num_keys, size)
    return [movement.transpose(ctx, y, np.argsort(order).tolist()) for y in results]


@rule("sort", target=XLA, dtypes=dtypes.INTEGER)
def sort_xla(ctx, *operands, dimension, num_keys, **params):
    """XLA sorts a single operand faster, and its equal integers cannot be told apart."""
    if len(operands) > 1 or dimension != operands[0].shape.rank - 1:
        return sort(ctx, *operands, dimension=dimension, num_keys=num_keys, **params)
    return [gen_xla_ops.xla_sort(input=operands[0])]


@rule("sort", dtypes=dtypes.NARROW)
def sort_narrow(ctx, *operands, **_):
    return narrow.run_on_order(ctx, *operands)


@rule("sort", target=CONSUMER, dtypes=words.WORDS)
def sort_words(ctx, *operands, **_):
    return words.run_on_order(ctx, *operands)


@rule("sort", target=CONSUMER, dtypes=dtypes.COMPLEX)
def sort_of_pairs(ctx, *operands, dimension, num_keys, **_):
    """Complex keys are two real ones: the real part, then the imaginary one."""
    is_pair = [avals.is_pair(aval.dtype) for aval in ctx.in_avals]
    parts = [
        part
        for x, both in zip(operands, is_pair, strict=True)
        for part in (pairs.parts(x) if both else [x])
    ]
    num_keys += sum(is_pair[:num_keys])
    size = ctx.size(ctx.in_avals[0].shape[dimension])
    rank = len(ctx.in_avals[0].shape)
    order = [i for i in range(rank) if i != dimension] + [dimension]
    moved = [movement.transpose(ctx, x, order) for x in parts]
    back = np.argsort(order).tolist()
    results = iter(
        movement.transpose(ctx, y, back) for y in _sort_last_natural(moved, num_keys, size)
    )
    return [pairs.pair(next(results), next(results)) if both else next(results) for both in is_pair]


def _sort_last(operands, num_keys, size):
    keys = ordering.pack([key for x in operands[:num_keys] for key in ordering.sort_keys(x)])
    dtype = operands[0].dtype
    if len(operands) == 1 and not (dtype.is_floating or dtype.is_complex):
        # The elements can be made from the sorted keys.
        descending, _ = ordering.top_k(emit("Invert", keys[0]), size)
        return [cast(emit("Invert", descending), dtype)]
    return ordering.sorted_by([emit("Invert", key) for key in keys], operands, size)


def _sort_last_natural(operands, num_keys, size):
    keys = [key for x in operands[:num_keys] for key in ordering.natural_keys(x)]
    dtype = operands[0].dtype
    if len(operands) == 1 and len(keys) == 1 and dtype != tf.uint64:
        descending, _ = ordering.top_k(ordering.reverse(keys[0]), size)
        return [cast(ordering.reverse(descending), dtype)]
    return ordering.sorted_by([ordering.reverse(key) for key in keys], operands, size)
