"""Patterns of layers that newer sets of operators have one node for, and these nodes.

onnxruntime runs each node faster than the group: activations and norms in the rows "transformer"
and "vision_transformer" of `tools.bench_onnx`. Mish is left out, as it takes as long as the three
ops of its pattern, and so is GroupNormalization, which onnxruntime expands to more ops than
`fused_groups` makes.
"""

from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.patterns import Match, either, op, product
from lowering.export.onnx.values import array_of, dtype_of, static

_TANH_SCALE, _TANH_CUBE = np.sqrt(2 / np.pi), 0.044715


def _mean(x: Any, axes: Any) -> Any:
    return op.ReduceMean(x, axes, keepdims=1)


def normalized(x: Any, variance: Any, epsilon: Any, *scale: Any) -> Any:
    """A value divided by its deviation, and perhaps scaled."""
    deviation = op.Sqrt(op.Add(variance, epsilon))
    inverse = either(op.Reciprocal(deviation), op.Div(1.0, deviation))
    divided = op.Div(product(x, *scale), deviation)
    if scale:
        divided = either(divided, product(op.Div(x, deviation), *scale))
    return either(product(x, inverse, *scale), divided)


def centered(x: Any, axes: Any, epsilon: Any, *scale: Any) -> Any:
    """A value minus its mean, divided by its deviation; the variance is written in several ways."""
    mean = _mean(x, axes)
    centered = op.Sub(x, mean)
    of_squares = op.Sub(_mean(op.Mul(x, x), axes), op.Mul(mean, mean))
    variance = either(
        _mean(either(op.Mul(centered, centered), op.Pow(centered, 2.0)), axes),
        of_squares,
        op.Relu(of_squares),
        op.Max(of_squares, 0.0),
    )
    return normalized(centered, variance, epsilon, *scale)


def scaled_layer_norm(x: Any, axes: Any, epsilon: Any, scale: Any, bias: Any) -> Any:
    """A layer norm with factors and offsets."""
    return op.Add(centered(x, axes, epsilon, scale), bias)


def layer_norm_without_bias(x: Any, axes: Any, epsilon: Any, scale: Any) -> Any:
    """A layer norm with factors."""
    return centered(x, axes, epsilon, scale)


def plain_layer_norm(x: Any, axes: Any, epsilon: Any) -> Any:
    """A layer norm without factors and offsets."""
    return centered(x, axes, epsilon)


def scaled_rms_norm(x: Any, axes: Any, epsilon: Any, scale: Any) -> Any:
    """A root mean square norm with factors."""
    return normalized(x, _mean(op.Mul(x, x), axes), epsilon, scale)


def plain_rms_norm(x: Any, axes: Any, epsilon: Any) -> Any:
    """A root mean square norm without factors."""
    return normalized(x, _mean(op.Mul(x, x), axes), epsilon)


def norm(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
    """A norm over the last axes, whose factors and offsets have the shape of these."""
    x = found["x"]
    axes, epsilon = array_of(found["axes"]), array_of(found["epsilon"])
    if not b.computes_like_float(x) or x.shape is None or axes is None or epsilon is None:
        return None
    rank, count = len(x.shape), axes.size
    sizes = tuple(n for n in tuple(x.shape)[rank - count :] if isinstance(n, int))
    if len(sizes) < count or epsilon.size != 1:
        return None
    if sorted(axes % rank) != [*range(rank - count, rank)]:
        return None
    of_elements = [_of_elements(b, found.values.get(name), sizes) for name in ("scale", "bias")]
    if any(v is None for name, v in zip(("scale", "bias"), of_elements) if name in found.values):
        return None
    scale, bias = of_elements
    scale = b.constant(np.ones(sizes), dtype_of(x)) if scale is None else scale
    attributes = {"axis": -count, "epsilon": float(epsilon.item())}
    if any(node.op_type == "Sub" for node in found.nodes):
        rest = [] if bias is None else [bias]
        return b.op("LayerNormalization", x, scale, *rest, **attributes)
    return b.op("RMSNormalization", x, scale, **attributes) if bias is None else None


def _of_elements(b: Builder, x: ir.Value | None, sizes: tuple[int, ...]) -> ir.Value | None:
    """A value that is broadcast along all axes but the last ones, in the shape of these."""
    shape = None if x is None else static(x)
    if x is None or shape is None or shape[-len(sizes) :] != sizes:
        return None
    return b.reshape(x, sizes) if set(shape[: -len(sizes)]) <= {1} else None


def _kept(kind: str, x: Any, axes: Any, shape: Any) -> Any:
    """A reduction that keeps its axes with size 1."""
    reduce = getattr(op, kind)
    return either(reduce(x, axes, keepdims=1), op.Reshape(reduce(x, axes), shape))


def softmax(x: Any, axes: Any, shape: Any, summed: Any, sums: Any) -> Any:
    """Exponentials divided by their sum."""
    exponential = op.Exp(op.Sub(x, _kept("ReduceMax", x, axes, shape)))
    return op.Div(exponential, _kept("ReduceSum", exponential, summed, sums))


def log_softmax(x: Any, axes: Any, shape: Any, summed: Any, sums: Any) -> Any:
    """The logarithm of a softmax."""
    shifted = op.Sub(x, _kept("ReduceMax", x, axes, shape))
    return op.Sub(shifted, op.Log(_kept("ReduceSum", op.Exp(shifted), summed, sums)))


def along_last_axis(kind: str) -> Any:
    """A replacement by a node along the last axis, if that is the only axis of the group."""

    def replacement(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
        x = found["x"]
        if not b.computes_like_float(x) or x.shape is None:
            return None
        rank = len(x.shape)
        for name in ("axes", "summed"):
            axes = array_of(found[name])
            if axes is None or [axis % rank for axis in axes] != [rank - 1]:
                return None
        for node in found.nodes:  # A mean of rows in place of columns has another shape.
            if node.op_type == "Reshape" and len(node.outputs[0].shape or ()) != rank:
                return None
        return b.op(kind, x, axis=-1)

    return replacement


def gelu(x: Any) -> Any:
    """GELU by the error function."""
    scaled = either(op.Mul(x, np.sqrt(0.5)), op.Div(x, np.sqrt(2)))
    return product(0.5, x, op.Add(1.0, op.Erf(scaled)))


def gelu_by_tanh(x: Any) -> Any:
    """GELU by the hyperbolic tangent."""
    cube = either(product(_TANH_CUBE, x, x, x), op.Mul(_TANH_CUBE, op.Pow(x, 3.0)))
    inner = either(
        op.Mul(_TANH_SCALE, op.Add(x, cube)),
        product(_TANH_SCALE, x, op.Add(1.0, product(_TANH_CUBE, x, x))),
    )
    return product(0.5, x, op.Add(1.0, op.Tanh(inner)))


def hard_sigmoid(x: Any) -> Any:
    """clip(x + 3, 0, 6) / 6."""
    clipped = op.Clip(op.Add(x, 3.0), 0.0, 6.0)
    return either(op.Div(clipped, 6.0), op.Mul(clipped, 1 / 6))


def hard_swish(x: Any) -> Any:
    """The product of a number and its HardSigmoid, in any order."""
    clipped = op.Clip(op.Add(x, 3.0), 0.0, 6.0)
    return either(
        product(x, clipped, 1 / 6), op.Div(op.Mul(x, clipped), 6.0), op.Mul(x, hard_sigmoid(x))
    )


def activation(kind: str, **attributes: Any) -> Any:
    """A replacement by a node of one operand."""

    def replacement(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
        x = found["x"]
        return b.op(kind, x, **attributes) if b.computes_like_float(x) else None

    return replacement
