"""Quotients and remainders of uint32 by known numbers, before uint32 is legalized.

A legalized quotient has dozens of equations, in which no pattern would be found.
"""

from typing import Any

import jax.extend.core as jex_core

from lowering import registry
from lowering.arrays.uint32 import UINT32
from lowering.passes.everywhere import Everywhere
from lowering.passes.fusion.patterns import fuse
from lowering.passes.fusion.quotients import UNSIGNED_PATTERNS
from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import Jaxpr, count_calls
from lowering.passes.literals import convert_literals

_DIVISIONS = ("div", "rem")


def fuse_uint32_quotients(jaxpr: jex_core.ClosedJaxpr) -> Any:
    """The closed jaxpr with masks and shifts for quotients by powers of two, wherever they are.

    Without quotients of uint32 it is the same object as before.
    """
    return Everywhere(finish=_fused).jaxpr(jaxpr)


def _fused(jaxpr: Jaxpr) -> Any:
    """Calls that divide uint32 by a literal are inlined, as JAX writes out remainders in calls."""
    if not isinstance(jaxpr, jex_core.ClosedJaxpr):
        return jaxpr
    dividing = {id(called) for eqn in jaxpr.eqns for called in _divisions_called(eqn)}
    if not dividing and not any(map(_divides_uint32, jaxpr.eqns)):
        return jaxpr
    calls = count_calls(jaxpr)
    inside = {x for key in dividing & calls.keys() for x in count_calls(calls[key][0])}
    kept = frozenset(calls) - dividing - inside
    inlined = convert_literals(inline_calls(jaxpr, kept))
    fused = fuse(inlined, UNSIGNED_PATTERNS, {})
    return jaxpr if fused is inlined else fused


def _divisions_called(eqn: jex_core.JaxprEqn) -> list[Jaxpr]:
    """The jaxpr that an equation calls with a literal, if it divides uint32."""
    if not registry.is_call(eqn) or not any(map(_is_number, eqn.invars)):
        return []
    called, _ = registry.called(eqn, eqn.invars)
    return [called] if any(map(_divides_uint32, called.eqns)) else []


def _divides_uint32(eqn: jex_core.JaxprEqn) -> bool:
    return eqn.primitive.name in _DIVISIONS and eqn.outvars[0].aval.dtype == UINT32


def _is_number(atom: Any) -> bool:
    return isinstance(atom, jex_core.Literal) and not atom.aval.shape
