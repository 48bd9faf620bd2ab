"""Moves transposes that convolutions need behind the ops that follow, to where they cancel out.

TensorFlow's images have their features last, those of ONNX first. A convolution is thus between two
transposes. An op on each element is computed before the second one, which is put behind it; at the
next convolution it meets its inverse.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx.values import is_known, made_by, permutation, static

# Ops on each element, whose operands are broadcast.
ELEMENTWISE = frozenset(
    "Abs Add And Cast Ceil Clip Cos Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual "
    "HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Min Mish Mod Mul Neg Not "
    "Or Pow Reciprocal Relu Round Sigmoid Sign Sin Softplus Sqrt Sub Tanh Where Xor".split()
)
_MARK = "layout"


def transposed(b: Any, x: ir.Value, perm: Sequence[int]) -> ir.Value:
    """A value in another order of axes, whose transpose may be moved."""
    result = b.transpose(x, perm)
    if made_by(result, "Transpose") is not None:
        result.meta[_MARK] = True
    return result


def before(
    b: Any, kind: str, operands: Sequence[ir.Value | None]
) -> tuple[list[ir.Value | None], list[int]] | None:
    """The operands of an elementwise op before they are transposed, and their permutation.

    None if the transpose cannot move behind the op: another operand would have to be transposed.
    """
    if kind not in ELEMENTWISE:
        return None
    marked = [x for x in operands if x is not None and _MARK in x.meta]
    if not marked:
        return None
    perm = permutation(marked[0])
    sources = [None if x is None else _in_order(b, x, perm) for x in operands]
    if any(x is None for x, given in zip(sources, operands, strict=True) if given is not None):
        return None
    return sources, perm


def _in_order(b: Any, x: ir.Value, perm: Sequence[int]) -> ir.Value | None:
    """The value whose transpose a value is, if it is available without another op; else None."""
    source = made_by(x, "Transpose")
    if source is not None and permutation(x) == list(perm):
        return source
    sizes, inverse = static(x), np.argsort(perm)
    if sizes is None or len(sizes) > len(perm) or not (is_known(x) or _is_small(sizes)):
        return b.transposed(x, inverse)
    if not sizes:
        return x
    padded = (1,) * (len(perm) - len(sizes)) + sizes
    return b.transpose(b.reshape(x, padded), inverse)


def _is_small(sizes: Sequence[int]) -> bool:
    """Whether a value is broadcast along all axes but one."""
    return sum(size != 1 for size in sizes) <= 1


def reduced(b: Any, x: ir.Value, axes: list[int], keepdims: bool) -> tuple[ir.Value, list[int]]:
    """A value and its axes to reduce; before a transpose, if none is needed after the reduction."""
    source = made_by(x, "Transpose")
    if source is None or _MARK not in x.meta or keepdims:
        return x, axes
    perm = permutation(x)
    kept = [perm[axis] for axis in range(len(perm)) if axis not in axes]
    return (source, sorted(perm[a] for a in axes)) if kept == sorted(kept) else (x, axes)
