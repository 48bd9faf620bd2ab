"""Norms of groups of features, which come last, by InstanceNormalization.

It takes a third of the time of the nodes that it stands for, its transposes included.
GroupNormalization is expanded by onnxruntime, and takes longer: see `fused_layers`.
"""

from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.fused_layers import centered, normalized
from lowering.export.onnx.patterns import Match, either, op
from lowering.export.onnx.values import array_of, dtype_of, static


def reshaped(x: Any, sizes: Any, axes: Any, epsilon: Any, back: Any) -> Any:
    """All in the shape of groups."""
    return op.Reshape(centered(op.Reshape(x, sizes), axes, epsilon), back)


def repeated(
    x: Any, sizes: Any, axes: Any, epsilon: Any, scale: Any, lead: Any, full: Any, back: Any
) -> Any:
    """Means and variances of groups are repeated for their features, as in Flax."""
    groups = op.Reshape(x, sizes)
    mean = op.ReduceMean(groups, axes, keepdims=0)
    of_squares = op.Sub(op.ReduceMean(op.Mul(groups, groups), axes, keepdims=0), op.Mul(mean, mean))
    variance = either(of_squares, op.Relu(of_squares), op.Max(of_squares, 0.0))
    mean, variance = (
        op.Reshape(op.Expand(op.Reshape(v, lead), full), back) for v in (mean, variance)
    )
    return normalized(op.Sub(x, mean), variance, epsilon, scale)


def fused(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
    """The norm of an image whose features are parts of groups."""
    x, sizes = found["x"], array_of(found["sizes"])
    axes, epsilon = array_of(found["axes"]), array_of(found["epsilon"])
    if x.shape is None or dtype_of(x) != ir.DataType.FLOAT or len(x.shape) < 3:
        return None
    if sizes is None or axes is None or epsilon is None or epsilon.size != 1:
        return None
    batch, *lengths, features = (n if isinstance(n, int) else None for n in x.shape)
    if None in lengths or features is None or not features:
        return None
    rank = sizes.size
    groups = int(sizes[-2])
    kept = sorted(set(range(rank)) - {int(axis) % rank for axis in axes})
    is_one = batch == 1 and kept == [rank - 2]
    of_batch = rank > 2 and kept == [0, rank - 2] and int(sizes[0]) == (batch or -1)
    if not (is_one or of_batch) or groups < 1 or groups * int(sizes[-1]) != features:
        return None
    scale = found.values.get("scale")
    shape = None if scale is None else static(scale)
    if scale is not None and (shape is None or shape != (*[1] * (len(shape) - 1), features)):
        return None
    last = len(x.shape) - 1
    first = b.transpose(x, [0, last, *range(1, last)])
    rows = b.reshape(first, [batch or -1, groups, features // groups * int(np.prod(lengths))])
    ones, zeros = (b.constant(np.full(groups, n), dtype_of(x)) for n in (1, 0))
    made = b.op("InstanceNormalization", rows, ones, zeros, epsilon=float(epsilon.item()))
    made.shape = rows.shape
    image = b.op("Reshape", made, b.ints(batch or -1, features, *lengths))
    result = b.transpose(image, [0, *range(2, last + 1), 1])
    return result if scale is None else b.op("Mul", result, scale)
