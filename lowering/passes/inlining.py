"""Puts the equations of called jaxprs in place of the calls."""

from collections.abc import Callable, Sequence

import jax.extend.core as jex_core

from lowering import registry
from lowering.passes.jaxprs import Jaxpr, count_calls, is_long
from lowering.passes.rewriting import Rewriter

# A shorter jaxpr costs less as equations in place than as a function of the graph.
FUNCTION_EQUATIONS = 12


def outlined(jaxpr: Jaxpr, becomes_short: Callable[[Jaxpr], bool]) -> frozenset[int]:
    """The jaxprs that are worth a function of the graph, by identity: called often, and long.

    `becomes_short` says whether passes make few equations of a long one.
    """
    return frozenset(
        key
        for key, (called, count) in count_calls(jaxpr).items()
        if count > 1 and is_long(called, FUNCTION_EQUATIONS) and not becomes_short(called)
    )


def inline_calls(jaxpr: Jaxpr, kept: frozenset[int]) -> Jaxpr:
    """Inlines all calls, and the calls in what they call.

    Args:
      jaxpr: a jaxpr.
      kept: the identities of jaxprs of which calls stay calls.
    """
    if not any(registry.is_call(eqn) for eqn in jaxpr.eqns):
        return jaxpr
    new = Rewriter(jaxpr)

    def walk(eqns: Sequence[jex_core.JaxprEqn]) -> None:
        for eqn in eqns:
            if not registry.is_call(eqn):
                new.add(eqn)
                continue
            called, operands = registry.called(eqn, new.read(eqn.invars))
            if id(called) in kept:
                new.add(eqn)
            else:
                copied, results = new.copy(called, operands, eqn)
                walk(copied)
                new.replace(eqn.outvars, results)

    walk(jaxpr.eqns)
    return new.jaxpr()
