"""Results that are an operand or a constant, where NaN and the signs of zeros do not matter."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np

from lowering import narrow_formats
from lowering.passes.simplify.ranges import Ranges

# Takes an equation, its operands and the ranges of all variables; returns the atom that its result
# is, or None if it is none of the operands.
_Simplification = Callable[[jex_core.JaxprEqn, list[Any], Ranges], Any]


def known_result(eqn: jex_core.JaxprEqn, operands: list[Any], ranges: Ranges) -> Any:
    """The atom that equals the result of an equation; None if there is none."""
    simplify = _SIMPLIFICATIONS.get(eqn.primitive.name)
    result = simplify(eqn, operands, ranges) if simplify else None
    if result is None:
        return _folded(eqn, operands)
    (outvar,) = eqn.outvars
    shape, wanted = result.aval.shape, outvar.aval.shape
    fits = len(shape) == len(wanted) and all(
        have == want or (isinstance(have, int) and have == 1)
        for have, want in zip(shape, wanted, strict=True)
    )
    return result if fits and result.aval.dtype == outvar.aval.dtype else None


def _max(eqn, operands, ranges):
    return _ordered(operands[::-1], ranges)[1]


def _min(eqn, operands, ranges):
    return _ordered(operands, ranges)[0]


def _ordered(operands, ranges):
    """The lesser and the greater of two operands; None where their ranges overlap."""
    for x, y in (operands, operands[::-1]):
        lesser, greater = ranges.of(x), ranges.of(y)
        if lesser is not None and greater is not None and lesser[1] <= greater[0]:
            return x, y
    return None, None


def _clamp(eqn, operands, ranges):
    low, x, high = map(ranges.of, operands)
    if None in (low, x, high) or not low[1] <= x[0] <= x[1] <= high[0]:
        return None
    return operands[1]


def _add(eqn, operands, ranges):
    """The operand that zeros are added to."""
    for x, y in (operands, operands[::-1]):
        if ranges.of(y) == (0, 0):
            return x
    return None


def _sub(eqn, operands, ranges):
    return operands[0] if ranges.of(operands[1]) == (0, 0) else None


def _mul(eqn, operands, ranges):
    """The operand that is multiplied by one, or the zeros that are by a finite number."""
    for x, y in (operands, operands[::-1]):
        if ranges.of(y) == (1, 1):
            return x
        if ranges.of(y) == (0, 0) and _is_finite(ranges.of(x)):
            return y
    return None


def _is_finite(found):
    """Whether a range is that of one finite number."""
    return found is not None and found[0] == found[1] and math.isfinite(found[0])


def _square(eqn, operands, ranges):
    """Zeros, whose positive powers are zeros."""
    (x,) = operands
    return x if ranges.of(x) == (0, 0) and eqn.params.get("y", 2) > 0 else None


def _power(eqn, operands, ranges):
    return operands[0] if eqn.params["y"] == 1 else _square(eqn, operands, ranges)


def _and(eqn, operands, ranges):
    """The operand of a logical and whose other operand is always true."""
    for x, y in (operands, operands[::-1]):
        if eqn.outvars[0].aval.dtype == np.bool_ and ranges.of(y) == (1, 1):
            return x
    return None


def _div(eqn, operands, ranges):
    return operands[0] if ranges.of(operands[1]) == (1, 1) else None


def _abs(eqn, operands, ranges):
    found = ranges.of(operands[0])
    return operands[0] if found is not None and found[0] >= 0 else None


def _select(eqn, operands, ranges):
    """The case that a constant selects."""
    which, *cases = operands
    found = ranges.of(which)
    return cases[found[0]] if found is not None and found[0] == found[1] else None


def _fit(eqn, operands, ranges):
    """The operand, if its integers are in range already."""
    limits, found = narrow_formats.limits(eqn.params["dtype"]), ranges.of(operands[0])
    if limits is None or found is None or not limits[0] <= found[0] <= found[1] <= limits[1]:
        return None
    return operands[0]


def _reshape(eqn, operands, ranges):
    """The operand of a reshape that changes nothing."""
    return operands[0]


_SIMPLIFICATIONS: dict[str, _Simplification] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "and": _and,
    "max": _max,
    "min": _min,
    "clamp": _clamp,
    "abs": _abs,
    "square": _square,
    "integer_pow": _power,
    "select_n": _select,
    "reshape": _reshape,
    "fit": _fit,
}

# NumPy's functions give the same as JAX for two numbers.
_FOLDS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _folded(eqn: jex_core.JaxprEqn, operands: Sequence[Any]) -> jex_core.Literal | None:
    """The result of an equation on two constants, which are scalars."""
    fold = _FOLDS.get(eqn.primitive.name)
    if fold is None or not all(isinstance(x, jex_core.Literal) for x in operands):
        return None
    values = [np.asarray(x.val, x.aval.dtype) for x in operands]
    if any(value.ndim or value.dtype.kind not in "iuf" for value in values):
        return None
    (outvar,) = eqn.outvars
    with np.errstate(all="ignore"):
        return jex_core.Literal(np.asarray(fold(*values), outvar.aval.dtype), outvar.aval)
