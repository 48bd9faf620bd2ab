"""Ops that broadcast, on tensors with more axes than their kernels take."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.ops import kernels
from lowering.ops.constants import constant, integers
from lowering.targets import TFJS

# The highest ranks that kernels of TensorFlow take.
_OF_TENSORFLOW = {"SelectV2": 8}
# That of consumers: TF Lite broadcasts up to five axes, and WebAssembly in TF.js computes some ops
# wrongly on more than six. WebGL selects from four.
_OF_CONSUMERS = 5
_OF_TFJS = {"SelectV2": 4}
_BROADCASTING = frozenset(
    "AddV2 Atan2 Equal FloorDiv FloorMod Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr "
    "Maximum Minimum Mul NotEqual Pow RealDiv SelectV2 SquaredDifference Sub TruncateMod".split()
)
LIMITED = _BROADCASTING.union(_OF_TENSORFLOW)


def are_too_many(op: str, operands: Sequence[Any]) -> bool:
    """Whether operands have more axes than the kernel of an op of `LIMITED` takes."""
    rank = max(_rank(x) for x in operands)
    if kernels.are_of_tensorflow():
        return rank > _OF_TENSORFLOW.get(op, math.inf)
    highest = _OF_TFJS if kernels.are_for(TFJS) else {}
    return rank > highest.get(op, _OF_CONSUMERS)


def _rank(x: Any) -> int:
    return x.shape.rank or 0 if isinstance(x, tf.Tensor) else np.ndim(x)


def by_merged_axes(run: Callable[..., tf.Tensor], operands: Sequence[tf.Tensor]) -> tf.Tensor:
    """An elementwise op on tensors of any known rank, which are broadcast to one shape."""
    operands = list(map(tf.convert_to_tensor, operands))
    rank = max(map(_rank, operands))
    shapes = [[1] * (rank - operand.shape.rank) + _sizes(operand) for operand in operands]
    # Neighbouring axes become one if they are of size one in the same operands.
    axes = [sizes for sizes in zip(*shapes, strict=True) if any(not _is_one(s) for s in sizes)]
    groups = [list(group) for _, group in itertools.groupby(axes, lambda a: [*map(_is_one, a)])]
    merged = [
        tf.reshape(operand, _vector([math.prod(sizes[i] for sizes in group) for group in groups]))
        for i, operand in enumerate(operands)
    ]
    longest = [next((s for s in sizes if not _is_one(s)), 1) for sizes in zip(*shapes, strict=True)]
    return tf.reshape(run(*merged), _vector(longest))


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
