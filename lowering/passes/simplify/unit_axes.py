"""Leaves out axes of size one that a program inserts and removes again.

JAX and libraries insert an axis so that one function serves for more: for a group of one head, a
batch of one, a transformation. With it, each transpose and product has an axis more, and patterns
do not match.
"""

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import jax.extend.core as jex_core

from lowering.passes.jaxprs import Jaxpr, is_variable
from lowering.passes.rewriting import Rewriter
from lowering.registry import Trait, has_trait

# An axis of an operand or result.
_Axis: TypeAlias = tuple[Any, int]
# Axes of the operands and results of an equation that can be left out, together or not at all.
_Links: TypeAlias = Iterator[tuple[_Axis, ...]]
# For an operand or result, the axes that are left out.
_Left: TypeAlias = Callable[[Any], Sequence[int]]


def drop_unit_axes(jaxpr: Jaxpr) -> Jaxpr:
    """Drops axes of size one that no argument, result or other primitive needs."""
    if not any(map(_may_gain, jaxpr.eqns)):
        return jaxpr
    left_out = _left_out(jaxpr)
    if not left_out:
        return jaxpr
    new = Rewriter(jaxpr)

    def left(atom):
        return () if isinstance(atom, jex_core.Literal) else left_out.get(atom, ())

    for eqn in jaxpr.eqns:
        if not any(map(left, (*eqn.invars, *eqn.outvars))):
            new.add(eqn)
            continue
        params = _HANDLERS[_kind(eqn)][1](eqn, left)
        if params is None:
            new.replace(eqn.outvars, eqn.invars[:1])
            continue
        outvars = [_smaller(var, left) for var in eqn.outvars]
        new.add(eqn.replace(outvars=outvars, params=params))
        new.replace(eqn.outvars, outvars)
    return new.jaxpr()


def _may_gain(eqn: jex_core.JaxprEqn) -> bool:
    return eqn.primitive.name in _GAINING and any(True for _ in _unit_axes(eqn.invars))


def _unit_axes(atoms: Sequence[Any]) -> Iterator[_Axis]:
    for atom in atoms:
        for axis, dim in enumerate(getattr(atom.aval, "shape", ())):
            if isinstance(dim, int) and dim == 1:
                yield atom, axis


def _without(values: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    return tuple(value for i, value in enumerate(values) if i not in axes)


def _smaller(var: jex_core.Var, left: _Left) -> jex_core.Var:
    axes = left(var)
    return jex_core.Var(var.aval.update(shape=_without(var.aval.shape, axes))) if axes else var


def _left_out(jaxpr: Jaxpr) -> dict[Any, list[int]]:
    """The axes that are dropped, by variable."""
    parents: dict[Any, Any] = {}
    needed = set(_unit_axes([*jaxpr.constvars, *jaxpr.invars]))
    needed |= {axis for axis in _unit_axes(jaxpr.outvars) if is_variable(axis[0])}

    def root(axis):
        while axis in parents:
            axis = parents[axis]
        return axis

    for eqn in jaxpr.eqns:
        axes = {axis for axis in _unit_axes([*eqn.invars, *eqn.outvars]) if is_variable(axis[0])}
        if not axes:
            continue
        kind = _kind(eqn)
        for group in _HANDLERS[kind][0](eqn) if kind in _HANDLERS else ():
            if all(is_variable(var) for var, _ in group) and axes.issuperset(group):
                axes.difference_update(group)
                for other in group[1:]:
                    if root(other) != root(group[0]):
                        parents[root(other)] = root(group[0])
        needed |= axes
    needed = set(map(root, needed))
    made = list(_unit_axes([var for eqn in jaxpr.eqns for var in eqn.outvars]))
    order: dict[_Axis, int] = {}
    for axis in made:
        order.setdefault(root(axis), len(order))
    for eqn in jaxpr.eqns:
        for free in _free_axes(eqn) if eqn.primitive.name == "dot_general" else ():
            if not all(is_variable(var) for var, _ in free):
                continue
            roots = {root(axis) for axis in free}
            if free and all(map(_is_one, free)) and needed.isdisjoint(roots):
                # A product of vectors would be made one of matrices again.
                needed.add(min(roots, key=order.__getitem__))
    found: dict[Any, list[int]] = collections.defaultdict(list)
    for var, place in made:
        if root((var, place)) not in needed:
            found[var].append(place)
    return found


def _is_one(axis: _Axis) -> bool:
    var, place = axis
    return isinstance(var.aval.shape[place], int) and var.aval.shape[place] == 1


def _free_axes(product: jex_core.JaxprEqn) -> list[list[_Axis]]:
    """The axes of each operand of a product that are neither contracted nor of the batch."""
    return [
        [(x, axis) for axis in range(len(x.aval.shape)) if axis not in (*contracted, *batch)]
        for x, contracted, batch in zip(
            product.invars, *product.params["dimension_numbers"], strict=True
        )
    ]


def _kind(eqn: jex_core.JaxprEqn) -> str:
    is_elementwise = has_trait(eqn.primitive.name, Trait.ELEMENTWISE)
    return "elementwise" if is_elementwise else eqn.primitive.name


def _links_of_elementwise(eqn: jex_core.JaxprEqn) -> _Links:
    """Scalars have no axes; an operand that is broadcast has other sizes than the result."""
    first, *others = [x for x in (*eqn.outvars, *eqn.invars) if getattr(x.aval, "shape", ())]
    rank = len(first.aval.shape)
    if all(len(x.aval.shape) == rank for x in others):
        for axis in range(rank):
            if all(x.aval.shape[axis] == first.aval.shape[axis] for x in others):
                yield tuple((x, axis) for x in (first, *others))


def _same(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any]:
    return eqn.params


def _links_of_reshape(eqn: jex_core.JaxprEqn) -> _Links:
    """All axes of size one, as a reshape makes any shape of any other."""
    if eqn.params["dimensions"] is None and len(eqn.invars) == 1:
        yield from ((axis,) for axis in _unit_axes([*eqn.invars, *eqn.outvars]))


def _reshape(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any] | None:
    (x,), (y,) = eqn.invars, eqn.outvars
    sizes = _without(y.aval.shape, left(y))
    is_same = sizes == _without(x.aval.shape, left(x))
    return None if is_same else {**eqn.params, "new_sizes": sizes}


def _links_of_squeeze(eqn: jex_core.JaxprEqn) -> _Links:
    (x,), (y,) = eqn.invars, eqn.outvars
    dimensions = eqn.params["dimensions"]
    kept = [axis for axis in range(len(x.aval.shape)) if axis not in dimensions]
    yield from (((x, axis),) for axis in dimensions)
    yield from (((x, axis), (y, i)) for i, axis in enumerate(kept))


def _squeeze(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any] | None:
    dimensions = _moved(eqn.params["dimensions"], left(eqn.invars[0]))
    return {**eqn.params, "dimensions": dimensions} if dimensions else None


def _moved(axes: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    """The positions of axes after others have been dropped."""
    return tuple(a - sum(other < a for other in gone) for a in axes if a not in gone)


def _links_of_broadcast(eqn: jex_core.JaxprEqn) -> _Links:
    """Axes are inserted, or stay; what is broadcast along an axis is kept small by it."""
    x, (y,) = eqn.invars[0], eqn.outvars
    places = eqn.params["broadcast_dimensions"]
    if len(eqn.invars) == 1:
        yield from (((x, i), (y, axis)) for i, axis in enumerate(places))
        yield from (((y, axis),) for axis in range(len(y.aval.shape)) if axis not in places)


def _broadcast(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any] | None:
    x, (y,) = eqn.invars[0], eqn.outvars
    shape = _without(y.aval.shape, left(y))
    places = _moved(_without(eqn.params["broadcast_dimensions"], left(x)), left(y))
    is_same = places == tuple(range(len(shape))) and shape == _without(x.aval.shape, left(x))
    return None if is_same else {**eqn.params, "shape": shape, "broadcast_dimensions": places}


def _links_of_transpose(eqn: jex_core.JaxprEqn) -> _Links:
    (x,), (y,) = eqn.invars, eqn.outvars
    yield from (((x, axis), (y, i)) for i, axis in enumerate(eqn.params["permutation"]))


def _transpose(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any] | None:
    permutation = _moved(eqn.params["permutation"], left(eqn.invars[0]))
    is_same = permutation == tuple(range(len(permutation)))
    return None if is_same else {**eqn.params, "permutation": permutation}


def _links_of_reduction(eqn: jex_core.JaxprEqn) -> _Links:
    x, (y,) = eqn.invars[0], eqn.outvars
    kept = [axis for axis in range(len(x.aval.shape)) if axis not in eqn.params["axes"]]
    if len(eqn.invars) == 1:
        yield from (((x, axis), (y, i)) for i, axis in enumerate(kept))


def _reduction(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any]:
    return {**eqn.params, "axes": _moved(eqn.params["axes"], left(eqn.invars[0]))}


def _links_of_concatenation(eqn: jex_core.JaxprEqn) -> _Links:
    atoms = (*eqn.invars, *eqn.outvars)
    for axis in range(len(atoms[0].aval.shape)):
        if axis != eqn.params["dimension"]:
            yield tuple((x, axis) for x in atoms)


def _concatenation(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any]:
    (dimension,) = _moved([eqn.params["dimension"]], left(eqn.outvars[0]))
    return {**eqn.params, "dimension": dimension}


def _links_of_product(eqn: jex_core.JaxprEqn) -> _Links:
    """Batch axes, and free axes."""
    (_, batch), (z,) = eqn.params["dimension_numbers"], eqn.outvars
    if eqn.invars[0] is eqn.invars[1]:
        return
    for i, (a, b) in enumerate(zip(*batch, strict=True)):
        yield (eqn.invars[0], a), (eqn.invars[1], b), (z, i)
    for place, axis in enumerate(itertools.chain(*_free_axes(eqn)), len(batch[0])):
        yield axis, (z, place)


def _product(eqn: jex_core.JaxprEqn, left: _Left) -> dict[str, Any]:
    gone = tuple(map(left, eqn.invars))
    numbers = tuple(
        tuple(_moved(axes, of) for axes, of in zip(pair, gone, strict=True))
        for pair in eqn.params["dimension_numbers"]
    )
    return {**eqn.params, "dimension_numbers": numbers}


_REDUCTION = _links_of_reduction, _reduction
# For a primitive, which axes can be left out, and the parameters without them: None if what is left
# is its operand.
_HANDLERS: dict[str, tuple[Callable[..., _Links], Callable[..., Any]]] = {
    "elementwise": (_links_of_elementwise, _same),
    "reshape": (_links_of_reshape, _reshape),
    "squeeze": (_links_of_squeeze, _squeeze),
    "broadcast_in_dim": (_links_of_broadcast, _broadcast),
    "transpose": (_links_of_transpose, _transpose),
    "concatenate": (_links_of_concatenation, _concatenation),
    "dot_general": (_links_of_product, _product),
    **{f"reduce_{name}": _REDUCTION for name in ("sum", "max", "min", "prod", "and", "or", "xor")},
    "argmax": _REDUCTION,
    "argmin": _REDUCTION,
}
# Primitives that become cheaper, or superfluous, with fewer axes.
_GAINING = {"reshape", "squeeze", "transpose", "dot_general"}
