"""SelectV2 of tensors with more axes than its kernel takes."""

import itertools
import math
from collections.abc import Sequence

import tensorflow as tf

from lowering.ops.constants import constant, integers

# The highest rank that the kernel takes.
_MAX_RANK = 8


def select(which: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x` where `which` is true, else `y`, all three broadcast to one shape; of any known rank."""
    operands = which, x, y
    rank = max(operand.shape.rank or 0 for operand in operands)
    if rank <= _MAX_RANK:
        return tf.raw_ops.SelectV2(condition=which, t=x, e=y)
    shapes = [[1] * (rank - operand.shape.rank) + _sizes(operand) for operand in operands]
    # Neighbouring axes become one if they are of size one in the same operands.
    axes = [sizes for sizes in zip(*shapes, strict=True) if any(not _is_one(s) for s in sizes)]
    groups = [list(group) for _, group in itertools.groupby(axes, lambda a: [*map(_is_one, a)])]
    merged = [
        tf.reshape(operand, _vector([math.prod(sizes[i] for sizes in group) for group in groups]))
        for i, operand in enumerate(operands)
    ]
    result = tf.raw_ops.SelectV2(condition=merged[0], t=merged[1], e=merged[2])
    longest = [next((s for s in sizes if not _is_one(s)), 1) for sizes in zip(*shapes, strict=True)]
    return tf.reshape(result, _vector(longest))


def _is_one(size: int | tf.Tensor) -> bool:
    return isinstance(size, int) and size == 1


def _sizes(x: tf.Tensor) -> list[int | tf.Tensor]:
    """The sizes of the axes: ints where they are known, else int32 scalars."""
    known = x.shape.as_list()
    if None not in known:
        return known
    sizes = tf.unstack(tf.shape(x), len(known))
    return [size if dim is None else dim for dim, size in zip(known, sizes, strict=True)]


def _vector(sizes: Sequence[int | tf.Tensor]) -> tf.Tensor:
    if all(isinstance(size, int) for size in sizes):
        return integers(sizes)
    return tf.stack([constant(s, tf.int32) if isinstance(s, int) else s for s in sizes])
