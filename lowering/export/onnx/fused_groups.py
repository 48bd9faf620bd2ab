"""Fuses norms of groups of features, which come last, to InstanceNormalization.

That takes a third of the time of the nodes that it replaces, its transposes included.
GroupNormalization is expanded by onnxruntime, and takes longer: see `fused_layers`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.fused_layers import centered, normalized
from lowering.export.onnx.patterns import Match, either, op, product
from lowering.export.onnx.values import array_of, dtype_of, static

# How features become the last axis of an image, and the first one behind the batch.
_TO_LAST, _TO_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


def reshaped(x: Any, sizes: Any, axes: Any, epsilon: Any, back: Any) -> Any:
    """A group norm that is computed in the shape of groups."""
    return op.Reshape(centered(op.Reshape(x, sizes), axes, epsilon), back)


def _statistics(x: Any, sizes: Any, axes: Any) -> tuple[Any, Any]:
    """The means and variances of the groups of an image."""
    groups = op.Reshape(x, sizes)
    mean, squares = (
        op.ReduceMean(each, axes, keepdims=0) for each in (groups, op.Mul(groups, groups))
    )
    difference = op.Sub(squares, op.Mul(mean, mean))
    return mean, either(difference, op.Relu(difference), op.Max(difference, 0.0))


def repeated(
    x: Any, sizes: Any, axes: Any, epsilon: Any, scale: Any, lead: Any, full: Any, back: Any
) -> Any:
    """A group norm that repeats means and variances of groups for their features, as in Flax."""
    mean, variance = (
        op.Reshape(op.Expand(op.Reshape(v, lead), full), back) for v in _statistics(x, sizes, axes)
    )
    return normalized(op.Sub(x, mean), variance, epsilon, scale)


def repeated_first(
    x: Any,
    sizes: Any,
    axes: Any,
    epsilon: Any,
    scale: Any,
    lead: Any,
    full: Any,
    of_image: Any,
    of_variance: Any,
) -> Any:
    """The same for the result of a convolution, whose features come first."""
    statistics = _statistics(op.Transpose(x, perm=_TO_LAST), sizes, axes)
    mean, variance = (op.Expand(op.Reshape(v, lead), full) for v in statistics)
    deviation = op.Sqrt(op.Add(op.Reshape(variance, of_variance), epsilon))
    factor = op.Transpose(product(op.Reciprocal(deviation), scale), perm=_TO_FIRST)
    centered_image = op.Sub(x, op.Transpose(op.Reshape(mean, of_image), perm=_TO_FIRST))
    return op.Mul(centered_image, factor)


def fused(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
    """The norm of an image whose features are parts of groups, and come last."""
    x = found["x"]
    if x.shape is None or len(x.shape) < 3:
        return None
    last = len(x.shape) - 1
    batch, *lengths, features = x.shape
    scale = _of_features(b, found.values.get("scale"), features)
    groups = _groups(found, batch, lengths, features)
    if groups is None or ("scale" in found.values and scale is None):
        return None
    first = b.transpose(x, [0, last, *range(1, last)])
    rows = _normalized(b, first, [batch, features, *lengths], groups, found)
    made = b.transpose(rows, [0, *range(2, last + 1), 1])
    if scale is not None:
        return b.op("Mul", made, scale)
    # The last reshape may be to another shape than that of the image.
    shape = root.outputs[0].shape
    result = None if shape is None else [n if isinstance(n, int) else -1 for n in shape]
    return None if result is None or result.count(-1) > 1 else b.reshape(made, result)


def fused_first(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
    """The norm of an image whose features come first."""
    x = found["x"]
    if x.shape is None or len(x.shape) != len(_TO_FIRST):
        return None
    batch, features, *lengths = x.shape
    scale = _of_features(b, found["scale"], features)
    groups = _groups(found, batch, lengths, features)
    if groups is None or scale is None:
        return None
    factor = b.reshape(scale, (-1, *[1] * len(lengths)))
    return b.op("Mul", _normalized(b, x, [batch, features, *lengths], groups, found), factor)


def _of_features(b: Builder, x: ir.Value | None, features: Any) -> ir.Value | None:
    """A vector with a number for each feature, if a value is that."""
    shape = None if x is None else static(x)
    if x is None or shape is None or shape != (*[1] * (len(shape) - 1), features):
        return None
    return b.reshape(x, (features,))


def _groups(found: Match, batch: Any, lengths: Sequence[Any], features: Any) -> int | None:
    """How many groups an image has, if the axes of a match are all others of the groups."""
    sizes, axes, epsilon = (array_of(found[name]) for name in ("sizes", "axes", "epsilon"))
    if sizes is None or axes is None or epsilon is None or epsilon.size != 1:
        return None
    if dtype_of(found["x"]) != ir.DataType.FLOAT or sizes.size < 2:
        return None
    if not all(isinstance(n, int) and n > 0 for n in (*lengths, features)):
        return None
    rank, count = sizes.size, int(sizes[-2])
    kept = sorted(set(range(rank)) - {int(axis) % rank for axis in axes})
    size = batch if isinstance(batch, int) else -1
    of_batch = rank > 2 and kept == [0, rank - 2] and int(sizes[0]) == size
    if not (of_batch or (size == 1 and kept == [rank - 2])):
        return None
    return count if count > 0 and count * int(sizes[-1]) == features else None


def _normalized(
    b: Builder, x: ir.Value, shape: Sequence[Any], groups: int, found: Match
) -> ir.Value:
    """An image of a shape with its features first, normalized."""
    batch, *rest = (n if isinstance(n, int) else -1 for n in shape)
    rows = b.reshape(x, [batch, groups, math.prod(rest) // groups])
    ones, zeros = (b.constant(np.full(groups, n), dtype_of(x)) for n in (1, 0))
    epsilon = array_of(found["epsilon"])
    assert epsilon is not None
    made = b.op("InstanceNormalization", rows, ones, zeros, epsilon=float(epsilon.item()))
    result = b.op("Reshape", made, b.ints(batch, *rest))
    result.shape = ir.Shape(shape)
    return result
