"""Leaves out equations that compute nothing new, where NaN and the signs of zeros do not matter.

JAX guards against numbers that a program cannot have: a sum of exponentials gets its absolute
value, and an index that is never negative is wrapped around. Libraries compute means twice, and
reshape what they have reshaped.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import narrow_formats
from lowering.arrays import small_integers
from lowering.passes.jaxprs import Jaxpr, called_jaxprs, is_variable
from lowering.passes.rewriting import Rewriter, without_unused
from lowering.passes.simplify.ranges import Ranges
from lowering.registry import Trait, has_trait

# Reductions of one element to itself.
_REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"})

# Takes an equation, its operands and the ranges of all variables; returns the atom that its result
# is, or None if it is none of the operands.
_Simplification = Callable[[jex_core.JaxprEqn, list[Any], Ranges], Any]


def tidy(jaxpr: Jaxpr) -> Jaxpr:
    """A jaxpr without equations whose results are an operand, constant, or computed before."""
    new, ranges = Rewriter(jaxpr), Ranges()
    computed: dict[Any, jex_core.JaxprEqn] = {}
    # By a variable: what it has been reshaped from.
    reshaped: dict[Any, Any] = {}
    # By a variable: what it has been converted from, if its dtype represents all numbers of that.
    converted: dict[Any, Any] = {}
    is_same = True
    for eqn in jaxpr.eqns:
        operands = new.read(eqn.invars)
        if _inserts_axes(eqn) and is_variable(operands[0]) and operands[0] in reshaped:
            eqn = _as_reshape(eqn)
        elif _reduces_nothing(eqn):
            eqn, is_same = _as_reshape(eqn), False
        if _is_reshape(eqn) and is_variable(operands[0]):
            # TensorFlow's converter to TF Lite stumbles over two that undo each other.
            source = reshaped.get(operands[0], operands[0])
            is_same = is_same and source is operands[0]
            eqn, operands = eqn.replace(invars=[source]), [source]
            reshaped[eqn.outvars[0]] = source
        if _is_of_floats_in_range(eqn, operands, ranges):
            params = {"dtype": eqn.outvars[0].aval.dtype}
            eqn = eqn.replace(primitive=small_integers.TO_INTEGERS, params=params)
            is_same = False
        result = _converted_back(eqn, operands, converted) or _result(eqn, operands, ranges)
        if result is not None:
            is_same = False
            if result.aval.shape == eqn.outvars[0].aval.shape:
                new.replace(eqn.outvars, [result])
                continue
            eqn, operands = _as_broadcast(eqn, result), [result]
        key = _key(eqn, operands)
        if key in computed:
            new.replace(eqn.outvars, computed[key].outvars)
            is_same = False
            continue
        if key is not None:
            computed[key] = eqn
        new.add(eqn)
        ranges.add(eqn.replace(invars=operands))
    return jaxpr if is_same else without_unused(new.jaxpr())


def _is_reshape(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation gives an array another shape, and that alone."""
    return (
        eqn.primitive.name == "reshape"
        and len(eqn.invars) == 1
        and eqn.params["dimensions"] is None
        and is_variable(eqn.invars[0])
    )


def _inserts_axes(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation gives an array more axes of size one, and that alone."""
    if eqn.primitive.name != "broadcast_in_dim" or len(eqn.invars) != 1:
        return False
    if not is_variable(eqn.invars[0]):
        return False
    shape, places = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    inserted = [dim for axis, dim in enumerate(shape) if axis not in places]
    is_kept = tuple(shape[axis] for axis in places) == eqn.invars[0].aval.shape
    return is_kept and all(dim == 1 for dim in inserted)


def _reduces_nothing(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation gives an array fewer axes of size one, such as the mean of one pixel."""
    if eqn.primitive.name not in _REDUCTIONS or len(eqn.invars) != 1:
        return False
    sizes = [eqn.invars[0].aval.shape[axis] for axis in eqn.params["axes"]]
    is_one = all(isinstance(size, int) and size == 1 for size in sizes)
    return is_variable(eqn.invars[0]) and bool(sizes) and is_one


def _as_reshape(eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
    params = {"new_sizes": eqn.outvars[0].aval.shape, "dimensions": None, "sharding": None}
    return eqn.replace(primitive=lax.reshape_p, params=params)


def _as_broadcast(eqn: jex_core.JaxprEqn, operand: Any) -> jex_core.JaxprEqn:
    """An equation that repeats an operand along its axes of size one."""
    shape = eqn.outvars[0].aval.shape
    params = {"shape": shape, "broadcast_dimensions": tuple(range(len(shape))), "sharding": None}
    return eqn.replace(primitive=lax.broadcast_in_dim_p, invars=[operand], params=params)


def _converted_back(
    eqn: jex_core.JaxprEqn, operands: Sequence[Any], converted: dict[Any, Any]
) -> Any:
    """The operand of the conversion that this one undoes; otherwise it is noted in `converted`."""
    if eqn.primitive.name != "convert_element_type" or not is_variable(operands[0]):
        return None
    (x,), (outvar,) = operands, eqn.outvars
    source = converted.get(x)
    if source is not None and source.aval.dtype == outvar.aval.dtype:
        return source
    if narrow_formats.has_all_of(outvar.aval.dtype, x.aval.dtype):
        converted[outvar] = x
    return None


def _is_of_floats_in_range(eqn: jex_core.JaxprEqn, operands: Sequence[Any], ranges: Ranges) -> bool:
    """Whether an equation makes integers of floats, none of which is too large for their dtype."""
    if eqn.primitive.name not in ("convert_element_type", "fit"):
        return False
    (x,), stored = operands, eqn.outvars[0].aval.dtype
    limits = narrow_formats.limits(eqn.params.get("dtype", stored))
    found = ranges.of(x)
    if limits is None or found is None or stored.kind not in "iu" or stored.itemsize > 4:
        return False
    return x.aval.dtype == np.float32 and limits[0] <= found[0] <= found[1] <= limits[1]


def _key(eqn: jex_core.JaxprEqn, operands: Sequence[Any]) -> Any:
    """A key that equal equations share; None if the equation must not be shared."""
    name = eqn.primitive.name
    if eqn.effects or has_trait(name, Trait.DRAWS):
        return None
    if has_trait(name, Trait.NOT_FOLDED | Trait.PER_DEVICE):  # As callbacks have both.
        return None
    if any(True for _ in called_jaxprs(eqn)):
        return None
    key = eqn.primitive, tuple(map(_identity, operands)), tuple(sorted(eqn.params.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _identity(atom: Any) -> Any:
    if not isinstance(atom, jex_core.Literal):
        return atom
    value = np.asarray(atom.val)
    return value.tobytes(), value.shape, str(value.dtype)


def _result(eqn: jex_core.JaxprEqn, operands: list[Any], ranges: Ranges) -> Any:
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
