"""Questions about jaxprs that several passes ask."""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax.extend.core as jex_core

# An open or closed jaxpr: the bodies of some primitives have no constants and are open.
Jaxpr: TypeAlias = jex_core.ClosedJaxpr | jex_core.Jaxpr

# `isinstance` is faster with a tuple of types than with a union.
_JAXPRS = (jex_core.ClosedJaxpr, jex_core.Jaxpr)
_SEQUENCES = (tuple, list)
# Most parameters are of these types, and passes look at all of them many times.
_OTHERS = frozenset({bool, float, int, str, type(None)})


def called_jaxprs(eqn: jex_core.JaxprEqn) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    return jaxprs_among(eqn.params.values())


def jaxprs_among(values: Iterable[Any]) -> Iterator[Jaxpr]:
    """The jaxprs among values, and in those that are tuples or lists."""
    found: list[Jaxpr] = []
    _collect(values, found)
    return iter(found)


def _collect(values, found):
    for value in values:
        if type(value) in _OTHERS:
            continue
        if isinstance(value, _SEQUENCES):
            if not _OTHERS.issuperset(map(type, value)):
                _collect(value, found)
        elif isinstance(value, _JAXPRS):
            found.append(value)


def with_computations(
    params: Mapping[str, Any], change: Callable[[jex_core.ClosedJaxpr], jex_core.ClosedJaxpr]
) -> dict[str, Any]:
    """The parameters of an equation, with other computations on scalars."""

    def changed(value):
        if isinstance(value, jex_core.ClosedJaxpr):
            return change(value)
        is_open = isinstance(value, jex_core.Jaxpr)
        return change(jex_core.ClosedJaxpr(value, ())).jaxpr if is_open else value

    return {name: changed(value) for name, value in params.items()}


def count_calls(jaxpr: Jaxpr) -> dict[int, tuple[Jaxpr, int]]:
    """Each jaxpr that is called in a jaxpr, and how often (once, or more), by identity."""
    counts: collections.Counter[int] = collections.Counter()
    found: dict[int, Jaxpr] = {}

    def walk(caller):
        for eqn in caller.eqns:
            for called in called_jaxprs(eqn):
                counts[id(called)] += 1
                found[id(called)] = called
                # Its own calls count twice if it is called twice; more makes no difference.
                if counts[id(called)] <= 2:
                    walk(called)

    walk(jaxpr)
    return {key: (called, counts[key]) for key, called in found.items()}


def is_long(
    jaxpr: Jaxpr, limit: int, count: Callable[[jex_core.JaxprEqn], int] = lambda eqn: 1
) -> bool:
    """Whether a jaxpr and all that it calls have at least `limit` equations.

    `count` says how many equations an equation counts as.
    """

    def rest(caller, left):
        for eqn in caller.eqns:
            left -= count(eqn)
            for called in called_jaxprs(eqn):
                left = rest(called, left)
            if left <= 0:
                break
        return left

    return rest(jaxpr, limit) <= 0


def is_variable(atom: Any) -> bool:
    """Whether an atom is a variable, not a literal."""
    return not isinstance(atom, jex_core.Literal)


def used(eqns: Sequence[jex_core.JaxprEqn], outvars: Sequence[Any] = ()) -> set[jex_core.Var]:
    """The variables that equations and results use."""
    atoms = (*(atom for eqn in eqns for atom in eqn.invars), *outvars)
    return set(filter(is_variable, atoms))


def needed(
    eqns: Sequence[jex_core.JaxprEqn],
    is_wanted: Callable[[jex_core.JaxprEqn], bool],
    results: Sequence[Any] = (),
) -> list[jex_core.JaxprEqn]:
    """The equations that are wanted or make results, and those that they depend on."""
    kept, variables = [], used((), results)
    for eqn in reversed(eqns):
        if is_wanted(eqn) or not variables.isdisjoint(eqn.outvars):
            kept.append(eqn)
            variables |= used([eqn])
    return kept[::-1]
