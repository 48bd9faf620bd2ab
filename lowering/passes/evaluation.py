"""Traces a jaxpr again, with other equations in place of some."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.passes.jaxprs import Jaxpr

# Computes the result of an equation, or its results, from its operands.
Bind = Callable[[jex_core.JaxprEqn, Sequence[Any]], Any]


def evaluate(jaxpr: Jaxpr, operands: Sequence[Any], bind: Bind) -> list[Any]:
    """The results of a jaxpr, each of whose equations is computed by `bind`."""
    body = getattr(jaxpr, "jaxpr", jaxpr)
    env = dict(zip(body.invars, operands, strict=True))
    env.update(zip(body.constvars, getattr(jaxpr, "consts", ()), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, jex_core.Literal) else env[atom]

    for eqn in body.eqns:
        with jax_compat.source_and_settings(eqn):
            results = bind(eqn, [read(atom) for atom in eqn.invars])
        if not eqn.primitive.multiple_results:
            results = [results]
        env.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in body.outvars]


def as_traced(eqn: jex_core.JaxprEqn, operands: Sequence[Any]) -> Any:
    """What an equation computes, as JAX has traced it."""
    return eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
