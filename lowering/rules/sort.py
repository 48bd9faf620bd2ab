"""Sorting along one dimension, by any number of keys."""

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from lowering.arrays import complex_math, narrow_numbers, uint32_parts
from lowering.arrays.integers import from_signed_order, in_signed_order
from lowering.arrays.uint32 import UINT32
from lowering.narrow_formats import NARROW
from lowering.ops import cast, constant, dtypes, emit, integers
from lowering.registry import Trait, decomposition, legalization, on_promoted, rule
from lowering.targets import PORTABLE, TFJS, XLA
from lowering.tensors import movement, ordering


@rule("sort", traits=Trait.PROMOTED | Trait.IN_RANGE)
def sort(ctx, *operands, dimension, num_keys, **_):
    """Always stable.

    A key is sorted by TopKV2, which is stable and descending, of its complement. As many keys as
    fit into 64 bits are packed into one. If several remain, a stable sort by each of them, from the
    least significant one on, sorts by all.
    """
    return _along_last(ctx, operands, dimension, num_keys, _sort_last)


_NATURAL = (*dtypes.FLOAT, *dtypes.COMPLEX, *dtypes.INTEGER, *dtypes.BOOL)


@rule("sort", target=PORTABLE, dtypes=_NATURAL)
def sort_natural(ctx, *operands, dimension, num_keys, **_):
    """Numbers are their own keys, and NaN comes last; subnormals are told from zeros."""
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


on_promoted("sort", dtypes=NARROW)(narrow_numbers.on_order)


@legalization("sort", dtypes=dtypes.UNSIGNED_32)
def sort_uint32(*operands, **params):
    is_uint32 = [x.dtype == UINT32 for x in operands]
    ordered = [in_signed_order(x) if w else x for x, w in zip(operands, is_uint32, strict=True)]
    results = lax.sort_p.bind(*ordered, **params)
    return [from_signed_order(x) if w else x for x, w in zip(results, is_uint32, strict=True)]


@legalization("sort", dtypes=dtypes.COMPLEX)
def sort_parts(*operands, **params):
    """Sorted by the real parts, and where these are equal by the imaginary ones."""
    return _sort_parts(operands, jnp.iscomplexobj, complex_math.parts, lax.complex, **params)


@decomposition("sort", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def sort_uint32_tfjs(*operands, **params):
    """Sorted by the upper 16 bits, and where these are equal by the lower ones."""
    return _sort_parts(
        operands, lambda x: x.dtype == UINT32, uint32_parts.split, uint32_parts.join, **params
    )


def _sort_parts(operands, is_split, apart, join, *, num_keys, **params):
    split = [apart(x) if is_split(x) else (x,) for x in operands]
    num_keys = sum(map(len, split[:num_keys]))
    flat = [part for parts in split for part in parts]
    results = iter(lax.sort_p.bind(*flat, num_keys=num_keys, **params))
    return [join(next(results), next(results)) if is_split(x) else next(results) for x in operands]


def _sort_last(operands, num_keys, size):
    keys = ordering.pack([key for x in operands[:num_keys] for key in ordering.sort_keys(x)])
    dtype = operands[0].dtype
    if len(operands) == 1 and not (dtype.is_floating or dtype.is_complex):
        # The elements can be made from the sorted keys.
        descending, _ = ordering.top_k(emit("Invert", keys[0]), size)
        return [cast(emit("Invert", descending), dtype)]
    return ordering.sorted_by([emit("Invert", key) for key in keys], operands, size)


def _sort_last_natural(operands, num_keys, size):
    if len(operands) == 1 and operands[0].dtype.is_floating:
        return [_sorted_floats(operands[0], size)]
    keys = [key for x in operands[:num_keys] for key in ordering.natural_keys(x)]
    dtype = operands[0].dtype
    if len(operands) == 1 and len(keys) == 1 and dtype != tf.uint64:
        descending, _ = ordering.top_k(ordering.reverse(keys[0]), size)
        return [cast(ordering.reverse(descending), dtype)]
    return ordering.sorted_by([ordering.reverse(key) for key in keys], operands, size)


def _sorted_floats(x, size):
    """Floats along the last axis, of `size`; infinities stand for NaN until all are sorted."""
    key = ordering.without_nan(x, np.inf)
    descending, _ = ordering.top_k(ordering.reverse(key), size)
    ascending = cast(ordering.reverse(descending), x.dtype)
    is_nan = cast(emit("IsNan", x), tf.int32)
    count = emit("Sum", is_nan, integers([-1]), keep_dims=True)
    size = constant(size, np.int32) if isinstance(size, int) else size
    is_number = emit("Less", tf.range(size), emit("Sub", size, count))
    return emit("SelectV2", is_number, ascending, constant(np.nan, x.dtype))
