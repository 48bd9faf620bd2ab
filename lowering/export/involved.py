"""Whether a program computes with NaN, whose results natural numerics leave to the runtime."""

from collections.abc import Sequence

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import jax_compat
from lowering.export.entry import Reference
from lowering.passes.inlining import inline_calls


def computes_with_nan(reference: Reference, samples: Sequence[np.ndarray]) -> bool:
    """Whether an equation of a program has a NaN among its operands, or makes one in a loop."""
    arguments = reference.arguments(samples)
    jaxpr = inline_calls(jax.make_jaxpr(reference.fun)(*arguments), frozenset())
    made = {
        var for eqn in jaxpr.eqns for var in eqn.invars if not isinstance(var, jex_core.Literal)
    }
    made |= {
        var
        for eqn in jaxpr.eqns
        if eqn.primitive.name in ("while", "scan", "cond")
        for var in eqn.outvars
    }
    floats = [v for v in made if jax.dtypes.issubdtype(getattr(v.aval, "dtype", bool), np.inexact)]
    watched = jax_compat.with_equations(jaxpr, jaxpr.jaxpr.invars, floats, jaxpr.eqns)
    values = jax.jit(jex_core.jaxpr_as_fun(watched))(*jax.tree.leaves(arguments))
    return any(bool(jax.numpy.isnan(x).any()) for x in values)
