"""Keeps TensorFlow's graph optimizer from rewriting ops to others that compute something else.

The rewrites are in `targets/grappler/quirks.py`.

An attribute of a node keeps the optimizer from that, and costs nothing when the graph runs. There
are two, as the optimizer asks for one when it moves ops, and for the other when it looks at known
operands. Where it asks for neither, an op is emitted in a form that the optimizer leaves alone.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from lowering import targets
from lowering.ops import kernels, memo
from lowering.ops.constants import constant
from lowering.ops.values import source
from lowering.targets.tflite import quirks as tflite

# A node with this attribute is not replaced, moved past another or merged into it.
_KEPT = "_grappler_do_not_remove"
# A node with `_tpu_` in the name of an attribute is not simplified by what it knows of operands.
_NOT_SIMPLIFIED = "_not_tpu_simplified"
_TRUE = attr_value_pb2.AttrValue(b=True)

# Ops that the optimizer may leave out, so that an op meets the one before them.
_VIEWS = frozenset(
    "Bitcast Cast ExpandDims Identity PreventGradient Reshape Squeeze Transpose".split()
)
_COMPARISONS = frozenset("Equal Greater GreaterEqual Less LessEqual NotEqual".split())
_SUMS = frozenset({"AddV2", "AddN"})
# The ops that make terms of a sum, once the optimizer has left out what changes nothing.
_TERMS = _SUMS | {"Mul", "RealDiv", "SelectV2", "Sub"}
# The functions of `quirks.extrema_of_monotonic_functions`.
_MONOTONIC = frozenset(
    "Acos Acosh Asin Asinh Atan Atanh Ceil Elu Erf Erfc Exp Expm1 Floor Inv LeakyRelu Log Log1p "
    "Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sinh Softplus Softsign Sqrt "
    "Tanh".split()
)

_EXTREMA = frozenset("ArgMax ArgMin Max Min".split())
_CONVOLUTIONS = frozenset("Conv2D Conv3D DepthwiseConv2dNative".split())
_SQUARES = frozenset({"Mul", "Square"})
# The ops that the optimizer computes in another order, or joins with others.
_WITHIN = {
    "AddV2": _SUMS,  # `quirks.sums_in_another_order`; products are, too.
    "Mul": frozenset({"Mul"}),
    "Log": frozenset({"Softmax"}),  # `quirks.logarithms_of_softmax`.
    "RealDiv": frozenset({"Sqrt"}),  # `quirks.quotients_by_roots`.
}
_SIMPLIFIED = frozenset("AddV2 Mul RealDiv Sub".split())
# The ops before or in which the optimizer is to be kept from something.
_GUARDED = _EXTREMA | _SIMPLIFIED | frozenset("Log LogicalNot Pack Square".split())
# The ops that it merges with others.
_MET = _COMPARISONS | _MONOTONIC | _SUMS | frozenset("Mul Softmax Sub".split())

_SOURCES = frozenset({"Const", "Placeholder"})

# So many terms of a sum, and sums in it, are looked at.
_MOST_TERMS = 64
# Larger constants are not looked at: the optimizer is kept from whatever their values may permit.
_MOST_ELEMENTS = 4096

Tensors = tuple[Any, ...]


def emitted(op: str, operands: Tensors, run: Callable[..., Any]) -> Any:
    """The results of an op, made so that the optimizer does not rewrite it with those before it.

    Args:
      op: the name of the op.
      operands: its inputs; all ops that make them have been made.
      run: makes an op, given its name and inputs.
    """
    if op not in _GUARDED or not _are_symbolic(operands):
        return run(op, *operands)
    is_exact = not targets.current().is_natural
    if is_exact:
        op, operands = _in_another_form(op, operands)
    elif (
        op == "LogicalNot"
        and targets.current().has(tflite.negated_comparisons)
        and _merged(op, operands, is_exact)
    ):
        # `tflite.quirks.negated_comparisons`: the converter looks at no attribute.
        op, operands = "Equal", (*operands, constant(False))
    for operand in _merged(op, operands, is_exact):
        _mark(operand.op, _KEPT)
    result = run(op, *operands)
    if _is_replaced(op, operands):
        _mark(result.op, _KEPT)
    if _is_simplified(op, operands, is_exact):
        _mark(result.op, _NOT_SIMPLIFIED)
    return result


def keep(tensors: Any) -> None:
    """Keeps the ops that make tensors, which functions of the graph take or return.

    The optimizer puts the body of such a function in its place, so that ops meet that were made
    apart.
    """
    for x in tensors:
        made = _maker(x)
        if made is not None and made.op.type in _MET:
            _mark(made.op, _KEPT)


def _mark(op: tf.Operation, attribute: str) -> None:
    op._set_attr(attribute, _TRUE)


def _are_symbolic(operands: Tensors) -> bool:
    return any(tf.is_symbolic_tensor(x) for x in tf.nest.flatten(operands))


def _maker(x: Any) -> Any:
    """The tensor that `x` is a view of."""
    while tf.is_symbolic_tensor(x) and x.op.type in _VIEWS:
        x = x.op.inputs[0]
    return x if tf.is_symbolic_tensor(x) else None


def _makers(operands: Tensors, types: frozenset[str]) -> list[Any]:
    """The ops of some types that make the operands, and are not known before the graph runs."""
    made = [_maker(x) for x in operands]
    return [x for x in made if x is not None and x.op.type in types and not _is_known(x)]


def _is_known(x: tf.Tensor) -> bool:
    """Whether a tensor of a graph depends on constants only, so that the optimizer computes it."""
    found: dict[str, bool] = memo.of(x.graph).setdefault("known ops", {})
    if x.op.name in found:
        return found[x.op.name]
    waiting = [x.op]
    while waiting:
        op = waiting[-1]
        if op.type in _SOURCES:
            found[waiting.pop().name] = op.type == "Const"
            continue
        inputs = [y.op for y in op.inputs]
        below = [made for made in inputs if made.name not in found]
        if below and op.name not in found:
            found[op.name] = False  # As long as it waits, for a graph of TensorFlow 1 has cycles.
            waiting += below
            continue
        waiting.pop()
        are_known = bool(inputs) and all(found[made.name] for made in inputs)
        found[op.name] = are_known and not op._is_stateful
    return found[x.op.name]


def _is_any_known(tensors: Tensors) -> bool:
    """Whether any of the tensors is known."""
    return any(_is_known(x) for x in tensors if tf.is_symbolic_tensor(x))


def _value(x: Any) -> np.ndarray | None:
    """The value of a constant that is small enough to look at."""
    x = _maker(x)
    if x is None or x.op.type != "Const" or x.shape.num_elements() > _MOST_ELEMENTS:
        return None
    return np.asarray(tf.get_static_value(x))


def _is_all(x: Any, number: float) -> bool:
    """Whether a tensor is a small constant of one number."""
    value = _value(x)
    return value is not None and bool(np.all(value == number))


def _is_inexact(x: tf.Tensor) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


def _in_another_form(op: str, operands: Tensors) -> tuple[str, Tensors]:
    """An op in place of one that the optimizer would merge with the op before it.

    See `quirks.logarithms_of_sums_with_one`, `quirks.exponentials_less_one` and
    `quirks.sums_of_equal_complex_numbers`.
    """
    if op == "AddV2" and _is_inexact(operands[0]):
        return _sum(*operands)
    made = source(operands[0])
    if op == "Log" and made is not None and made.type == "AddV2":
        for x, y in (made.inputs, reversed(made.inputs)):
            if _is_constant_one(y):
                return op, (tf.raw_ops.Sub(x=x, y=_negated(y)),)
    if op == "Sub" and made is not None and made.type == "Exp" and _is_constant_one(operands[1]):
        return "AddV2", (operands[0], _negated(operands[1]))
    return op, operands


def _sum(x: tf.Tensor, y: tf.Tensor) -> tuple[str, Tensors]:
    is_double = _maker(x) is _maker(y)
    if not x.dtype.is_complex:
        return ("Mul", (x, constant(2, x.dtype))) if is_double and x is y else ("AddV2", (x, y))
    if is_double:
        y = tf.raw_ops.Identity(input=y)
    if tf.is_symbolic_tensor(y):
        _mark(y.op, _KEPT)  # Or it becomes one with what is equal to it.
    return "AddV2", (x, y)


def _is_constant_one(x: tf.Tensor) -> bool:
    made = source(x)
    return made is not None and made.type == "Const" and _is_all(x, 1)


def _negated(x: tf.Tensor) -> tf.Tensor:
    """A constant with the other sign."""
    return constant(-np.asarray(tf.get_static_value(source(x).outputs[0])))


def _merged(op: str, operands: Tensors, is_exact: bool) -> list[tf.Tensor]:
    """The results of ops that the optimizer would merge with an op on them, or move past it."""
    first = operands[:1]
    if op == "LogicalNot":  # `quirks.negated_comparisons`.
        return [x for x in _makers(first, _COMPARISONS) if _is_inexact(x.op.inputs[0])]
    if op in _EXTREMA:
        return _makers(first, _MONOTONIC)
    if op in _SQUARES and not _is_inexact(operands[0]):
        # `quirks.squares_of_differences`. Equal operands become one.
        differences = _makers(operands, frozenset({"Sub"}))
        return differences if len(differences) == len(operands) else []
    if op == "AddV2" and _has_equal_terms(operands):  # `quirks.sums_of_equal_terms_in_loops`.
        return _makers(operands, _TERMS)
    if op not in _WITHIN or not is_exact or not _is_inexact(operands[0]):
        return []
    return _makers(operands, _WITHIN[op])


def _has_equal_terms(operands: Tensors) -> bool:
    """Whether a sum of sums has a term twice, among the first of its terms."""
    waiting, terms = list(operands), set()
    for _ in range(_MOST_TERMS):
        if not waiting:
            break
        made = _term(waiting.pop())
        if made is None:
            continue
        if made.op.type in _SUMS or made.op.type == "Sub":
            waiting += made.op.inputs
        elif id(made) in terms:
            return True
        else:
            terms.add(id(made))
    return False


def _term(x: Any) -> Any:
    """The tensor that `x` equals by a factor of one or a known choice, or is a view of."""
    while (x := _maker(x)) is not None:
        inputs = x.op.inputs
        if x.op.type in ("Mul", "RealDiv") and _is_all(inputs[1], 1):
            x = inputs[0]
        elif x.op.type == "Mul" and _is_all(inputs[0], 1):
            x = inputs[1]
        elif x.op.type == "SelectV2" and (_is_all(inputs[0], 1) or _is_all(inputs[0], 0)):
            x = inputs[1 if _is_all(inputs[0], 1) else 2]
        else:
            return x
    return None


def _is_replaced(op: str, operands: Tensors) -> bool:
    """Whether an op is one of `quirks.packs_of_equal_tensors`."""
    return op == "Pack" and not kernels.supports("Tile", operands[0][0].dtype)


def _is_simplified(op: str, operands: Tensors, is_exact: bool) -> bool:
    """Whether the optimizer would simplify an op to one that computes something else.

    What is left to it is exact: the sum with zero, the product with one, and the like. The factor
    of a convolution may go into its weights.
    """
    if op not in _SIMPLIFIED:
        return False
    x, y = operands
    if not _is_inexact(x):
        # `quirks.differences_to_zero`; a negation meets other ops, too.
        return op == "Sub" and (x.dtype.is_unsigned or _is_any_known((x,)))
    if op == "RealDiv":  # `quirks.quotients_by_constants`.
        return not _is_all(y, 1)
    if not is_exact or not _is_any_known(operands):
        return False
    if op == "Mul":
        # `quirks.complex_factors_of_one`.
        is_one = not x.dtype.is_complex and (_is_all(x, 1) or _is_all(y, 1))
        return not (is_one or _makers(operands, _CONVOLUTIONS))
    return not _is_all(y, 0) and (op == "Sub" or not _is_all(x, 0))
