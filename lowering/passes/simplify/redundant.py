"""Leaves out equations that compute nothing new, where NaN and the signs of zeros do not matter.

JAX guards against numbers that a program cannot have: a sum of exponentials gets its absolute
value, and an index that is never negative is wrapped around. Libraries compute means twice, and
reshape what they have reshaped.
"""

from collections.abc import Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np

from lowering import narrow_formats
from lowering.arrays import small_integers
from lowering.passes.jaxprs import Jaxpr, called_jaxprs, is_variable
from lowering.passes.rewriting import Rewriter, as_broadcast, as_reshape, without_unused
from lowering.passes.simplify.identities import known_result
from lowering.passes.simplify.ranges import Ranges
from lowering.registry import Trait, has_trait

# Reductions of one element to itself.
_REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"})


def tidy(jaxpr: Jaxpr) -> Jaxpr:
    """A jaxpr without equations whose results are an operand, constant, or computed before."""
    new, ranges = Rewriter(jaxpr), Ranges()
    computed: dict[Any, jex_core.JaxprEqn] = {}
    # By a variable: what it has been reshaped from.
    reshaped: dict[Any, Any] = {}
    # By a variable: the equation that inserts its axes of size one.
    expanded: dict[Any, jex_core.JaxprEqn] = {}
    # By a variable: what it has been converted from, if its dtype represents all numbers of that.
    converted: dict[Any, Any] = {}
    is_same = True
    for eqn in jaxpr.eqns:
        operands = new.read(eqn.invars)
        if _inserts_axes(eqn) and is_variable(operands[0]) and operands[0] in reshaped:
            eqn = as_reshape(eqn, eqn.invars[0], eqn.outvars[0])
        elif _reduces_nothing(eqn):
            eqn, is_same = as_reshape(eqn, eqn.invars[0], eqn.outvars[0]), False
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
        if _converts_again(eqn, operands, converted):
            operands, is_same = [converted[operands[0]]], False
            eqn = eqn.replace(invars=operands)
        result = _conversion_to_same(eqn, operands, converted) or known_result(
            eqn, operands, ranges
        )
        if result is not None:
            is_same = False
            if result.aval.shape == eqn.outvars[0].aval.shape:
                new.replace(eqn.outvars, [result])
                continue
            axes = range(len(eqn.outvars[0].aval.shape))
            eqn, operands = as_broadcast(eqn, result, eqn.outvars[0], axes), [result]
        known = _computed_before_expansion(eqn, operands, expanded, computed)
        if known is not None:
            eqn, operands, is_same = known, known.invars, False
        if _inserts_axes(eqn):
            expanded[eqn.outvars[0]] = eqn.replace(invars=operands)
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


def _computed_before_expansion(
    eqn: jex_core.JaxprEqn,
    operands: Sequence[Any],
    expanded: dict[Any, jex_core.JaxprEqn],
    computed: dict[Any, jex_core.JaxprEqn],
) -> jex_core.JaxprEqn | None:
    """An equation that expands what has been computed of an array in place of the expanded array.

    JAX computes a mean without the reduced axes, and again with these for the variance.
    """
    arrays = [x for x in operands if is_variable(x)]
    if len(arrays) != 1 or arrays[0] not in expanded or len(eqn.outvars) != 1:
        return None
    if not has_trait(eqn.primitive.name, Trait.ELEMENTWISE):
        return None
    expand = expanded[arrays[0]]
    same = computed.get(_key(eqn, [expand.invars[0] if x is arrays[0] else x for x in operands]))
    if same is None or eqn.outvars[0].aval.shape != arrays[0].aval.shape:
        return None
    return expand.replace(invars=same.outvars, outvars=eqn.outvars)


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


def _converts_again(
    eqn: jex_core.JaxprEqn, operands: Sequence[Any], converted: dict[Any, Any]
) -> bool:
    """Whether an equation converts numbers that a conversion before has left the same."""
    is_conversion = eqn.primitive.name == "convert_element_type" and is_variable(operands[0])
    return is_conversion and operands[0] in converted


def _conversion_to_same(
    eqn: jex_core.JaxprEqn, operands: Sequence[Any], converted: dict[Any, Any]
) -> Any:
    """The operand of a conversion to its own dtype; otherwise the conversion may be noted."""
    if eqn.primitive.name != "convert_element_type" or not is_variable(operands[0]):
        return None
    (x,), (outvar,) = operands, eqn.outvars
    if x.aval.dtype == outvar.aval.dtype:
        return x
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
