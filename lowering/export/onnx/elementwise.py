"""Ops on each element."""

import functools
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import op
from lowering.export.onnx.values import array_of, dtype_of, made_by

# Ops that ONNX has with the same operands.
_SAME = {
    "Abs": "Abs",
    "Acos": "Acos",
    "Acosh": "Acosh",
    "Add": "Add",
    "AddV2": "Add",
    "Asin": "Asin",
    "Asinh": "Asinh",
    "Atan": "Atan",
    "Atanh": "Atanh",
    "Ceil": "Ceil",
    "Cos": "Cos",
    "Cosh": "Cosh",
    "Div": "Div",
    "Equal": "Equal",
    "Erf": "Erf",
    "Exp": "Exp",
    "Floor": "Floor",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Inv": "Reciprocal",
    "IsInf": "IsInf",
    "IsNan": "IsNaN",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "Log": "Log",
    "LogicalAnd": "And",
    "LogicalNot": "Not",
    "LogicalOr": "Or",
    "Maximum": "Max",
    "Minimum": "Min",
    "Mul": "Mul",
    "Pow": "Pow",
    "RealDiv": "Div",
    "Reciprocal": "Reciprocal",
    # ONNX rounds halves to the nearest even number, as both do.
    "Rint": "Round",
    "Round": "Round",
    "Sigmoid": "Sigmoid",
    "Sign": "Sign",
    "Sin": "Sin",
    "Sinh": "Sinh",
    "Softplus": "Softplus",
    "Sqrt": "Sqrt",
    "Sub": "Sub",
    "Tan": "Tan",
    "Tanh": "Tanh",
}


def _same(kind: str, b: Builder, node: Any, *operands: ir.Value) -> ir.Value:
    return b.op(kind, *operands)


for _type, _kind in _SAME.items():
    op(_type)(functools.partial(_same, _kind))


@op("Neg")
def neg(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The negation; that of a negation is the operand."""
    return made_by(x, "Neg") or b.op("Neg", x)


@op("NotEqual")
def not_equal(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """ONNX has only its opposite, and NaN, which alone does not equal itself."""
    if dtype_of(x) == dtypes.BOOL:
        return b.op("Xor", x, y)
    if x is y and dtype_of(x) in (dtypes.FLOAT, dtypes.DOUBLE):
        return b.op("IsNaN", x)
    return b.op("Not", b.op("Equal", x, y))


@op("IsFinite")
def is_finite(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """Less than infinity, which NaN is not."""
    return b.op("Less", b.op("Abs", x), b.like(x, np.inf))


@op("Square")
def square(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """A product; powers are slower."""
    return b.op("Mul", x, x)


@op("SquaredDifference")
def squared_difference(b: Builder, node: Any, x: ir.Value, y: ir.Value) -> ir.Value:
    """The square of a difference."""
    difference = b.op("Sub", x, y)
    return b.op("Mul", difference, difference)


@op("Rsqrt")
def rsqrt(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The reciprocal of a square root."""
    return b.op("Reciprocal", b.op("Sqrt", x))


@op("Cast")
def cast(b: Builder, node: Any, x: Any) -> Any:
    """A conversion; from complex to real numbers, it drops the imaginary parts."""
    target = node.outputs[0].dtype
    if target.is_complex:
        part = dtypes.of(target.real_dtype)
        if isinstance(x, tuple):
            return tuple(b.cast(each, part) for each in x)
        real = b.cast(x, part)
        return real, b.op("Sub", real, real)
    if isinstance(x, tuple):
        x, _ = x
    return b.cast(x, dtypes.of(target))


@op("SelectV2")
def select(b: Builder, node: Any, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """A Where; of booleans, by logic, see `onnx.quirks.where_of_bools`."""
    if dtype_of(x) == dtypes.BOOL:
        return _select_boolean(b, condition, x, y)
    opposite = made_by(condition, "Not")
    if opposite is not None:
        return b.op("Where", opposite, y, x)
    return b.op("Where", condition, x, y)


def _select_boolean(b: Builder, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    if (known := array_of(y)) is not None and not known.any():
        return b.op("And", condition, x)
    if (known := array_of(x)) is not None and known.all():
        return b.op("Or", condition, y)
    return b.op("Or", b.op("And", condition, x), b.op("And", b.op("Not", condition), y))


@op("Select")
def select_rows(b: Builder, node: Any, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """A Where; a vector as condition selects rows of the others."""
    ranks = [t.shape.rank for t in node.inputs[:2]]
    if ranks[0] == 1:
        condition = b.unsqueeze(condition, *range(1, ranks[1]))
    return select(b, node, condition, x, y)


@op("ClipByValue")
def clip(b: Builder, node: Any, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """One op if the bounds are single numbers."""
    if all(bound.shape.rank == 0 for bound in node.inputs[1:]):
        return b.op("Clip", x, low, high)
    return b.op("Min", b.op("Max", x, low), high)


@op("Relu")
def relu(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The op, or a maximum for the dtypes that it has no kernel for."""
    if dtype_of(x) == dtypes.INT64:
        return b.op("Max", x, b.like(x, 0))
    return b.op("Relu", x)


@op("Relu6")
def relu6(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """Clips to [0, 6]."""
    return b.op("Clip", x, b.like(x, 0), b.like(x, 6))


@op("LeakyRelu")
def leaky_relu(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The op, or a choice for float64, which it has no kernel for."""
    alpha = node.get_attr("alpha")
    if b.computes_like_float(x):
        return b.op("LeakyRelu", x, alpha=alpha)
    positive = b.op("Greater", x, b.like(x, 0))
    return b.op("Where", positive, x, b.op("Mul", x, b.like(x, alpha)))


@op("Elu")
def elu(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The op, or an exponential for float64, which it has no kernel for."""
    if b.computes_like_float(x):
        return b.op("Elu", x)
    positive = b.op("Greater", x, b.like(x, 0))
    below = b.op("Sub", b.op("Exp", b.op("Min", x, b.like(x, 0))), b.like(x, 1))
    return b.op("Where", positive, x, below)


@op("Softmax", "LogSoftmax")
def softmax(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """Along the last axis."""
    return b.op(node.type, x, axis=-1)


@op("ZerosLike", "OnesLike")
def filled_like(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """A number in the shape of a value."""
    number = np.full(1, node.type == "OnesLike", dtype_of(x).numpy())
    shape = node.inputs[0].shape
    sizes = b.ints(*shape) if shape.is_fully_defined() else b.op("Shape", x)
    return b.op("ConstantOfShape", sizes, value=ir.Tensor(number), dtype=dtype_of(x))
