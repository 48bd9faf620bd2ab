"""Reductions that keep the reduced axes with size one, where later equations put them back.

Libraries reduce axes, compute with the result, and then broadcast it along the axes again. If the
reduction keeps the axes, nothing has to be reshaped.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import registry
from lowering.passes.fusion.patterns import Uses
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import Rewriter
from lowering.registry import Trait, has_trait

REDUCE_KEEPING = registry.new_primitive("reduce_keeping_axes")
REDUCE_KEEPING.def_abstract_eval(
    lambda x, *, reduction, axes: jax.core.ShapedArray(_with_axes(x.shape, axes), x.dtype)
)

# The shape of each variable with the reduced axes.
_Kept: TypeAlias = dict[Any, tuple[Any, ...]]

_DTYPES = np.float32, np.float64
_REDUCTIONS = "reduce_sum", "reduce_max", "reduce_min", "reduce_prod"


def keep_axes(jaxpr: Jaxpr) -> Jaxpr:
    """Replaces reductions whose results get their axes back in all uses.

    Elementwise equations may stand between; they compute with the axes in place.
    """
    kept = _kept(jaxpr)
    if not kept:
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        outvar = next(iter(eqn.outvars), None)
        if outvar is not None and outvar in kept:
            result = jex_core.Var(outvar.aval.update(shape=kept[outvar]))
            eqn = eqn.replace(outvars=[result])
            if eqn.primitive.name in _REDUCTIONS:
                params = {"reduction": eqn.primitive.name, "axes": eqn.params["axes"]}
                eqn = eqn.replace(primitive=REDUCE_KEEPING, params=params)
            new.add(eqn)
            new.replace([outvar], [result])
        elif eqn.invars and _shape(eqn.invars[0], kept) is not None:
            new.replace(eqn.outvars, eqn.invars[:1])
        else:
            new.add(eqn)
    return new.jaxpr()


def _kept(jaxpr: Jaxpr) -> _Kept:
    """The variables that can have the reduced axes, and their shapes with them."""
    kept: _Kept = {}
    for eqn in jaxpr.eqns:
        shape = _shape_with_axes(eqn, kept)
        if shape is not None:
            kept[eqn.outvars[0]] = shape
    uses = Uses(jaxpr)
    while refused := [var for var in kept if not _is_consistent(var, kept, uses)]:
        for var in refused:
            del kept[var]
    return kept


def _shape_with_axes(eqn: jex_core.JaxprEqn, kept: _Kept) -> tuple[Any, ...] | None:
    """The shape of a result with the reduced axes, if an equation reduces or computes with such."""
    if len(eqn.outvars) != 1 or not eqn.outvars[0].aval.shape:
        return None
    if eqn.primitive.name in _REDUCTIONS and eqn.invars[0].aval.dtype in _DTYPES:
        axes, shape = eqn.params["axes"], eqn.invars[0].aval.shape
        return _with_axes(shape, axes) if axes else None
    if not has_trait(eqn.primitive.name, Trait.ELEMENTWISE):
        return None
    shapes = {_shape(atom, kept) for atom in _arrays(eqn)}
    return shapes.pop() if len(shapes) == 1 else None


def _with_axes(shape: tuple[Any, ...], axes: Sequence[int]) -> tuple[Any, ...]:
    return tuple(1 if i in axes else dim for i, dim in enumerate(shape))


def _arrays(eqn: jex_core.JaxprEqn) -> list[Any]:
    """The operands of an equation that are no scalars."""
    return [atom for atom in eqn.invars if getattr(atom.aval, "shape", ())]


def _shape(atom: Any, kept: _Kept) -> tuple[Any, ...] | None:
    return None if isinstance(atom, jex_core.Literal) else kept.get(atom)


def _is_consistent(var: Any, kept: _Kept, uses: Uses) -> bool:
    """Whether whatever makes or uses a variable can have the axes, too."""
    maker = uses.maker(var)
    assert maker is not None
    is_made_so = maker.primitive.name in _REDUCTIONS or all(
        _shape(atom, kept) == kept[var] for atom in _arrays(maker)
    )
    return is_made_so and all(
        eqn is not None
        and (
            _is_expansion(eqn, kept[var])
            if eqn.outvars[0] not in kept
            else kept[eqn.outvars[0]] == kept[var] and eqn.primitive.name not in _REDUCTIONS
        )
        for eqn in uses.used_by[var]
    )


def _is_expansion(eqn: jex_core.JaxprEqn, shape: tuple[Any, ...]) -> bool:
    """Whether an equation gives its operand a shape with axes of size one."""
    is_reshape = eqn.primitive.name == "reshape" and eqn.params["dimensions"] is None
    if not (is_reshape or eqn.primitive.name == "broadcast_in_dim") or len(eqn.invars) != 1:
        return False
    if eqn.outvars[0].aval.shape != shape:
        return False
    dims = eqn.invars[0].aval.shape
    if is_reshape:
        return True
    inserted = set(range(len(shape))) - set(eqn.params["broadcast_dimensions"])
    placed = tuple(shape[i] for i in eqn.params["broadcast_dimensions"])
    return placed == dims and all(shape[i] == 1 for i in inserted)
