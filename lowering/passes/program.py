"""A JAX function, traced and prepared to be lowered."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import callables, jax_compat, narrow_formats
from lowering.passes import pipeline
from lowering.passes.jaxprs import count_calls
from lowering.passes.owning import with_own_constants
from lowering.targets import Target


@dataclasses.dataclass(frozen=True)
class Program:
    """A traced JAX function.

    Attributes:
      jaxpr: the closed jaxpr, without dead code, in dtypes that the target computes with.
      out_tree: the structure of the function's result.
      outlined: the jaxprs that are to be functions of the graph, by identity.
      traced: the closed jaxpr as JAX has traced it, which can be differentiated.
      source: the function and the line that it begins in, for equations without a line.
    """

    jaxpr: jex_core.ClosedJaxpr
    out_tree: jax.tree_util.PyTreeDef
    outlined: frozenset[int]
    traced: jex_core.ClosedJaxpr
    source: str = ""

    @functools.cached_property
    def highest_rank(self) -> int:
        """The most axes that an array in it has."""
        jaxprs = [self.jaxpr, *(called for called, _ in count_calls(self.jaxpr).values())]
        variables = (
            var
            for jaxpr in jaxprs
            for vars_ in (
                getattr(jaxpr, "jaxpr", jaxpr).invars,
                *(eqn.outvars for eqn in jaxpr.eqns),
            )
            for var in vars_
        )
        return max((len(getattr(var.aval, "shape", ())) for var in variables), default=0)

    @functools.cached_property
    def narrow_floats(self) -> frozenset[np.dtype]:
        """The floating-point dtypes of eight bits or fewer of its arguments and constants."""
        called = (jaxpr for jaxpr, _ in count_calls(self.traced).values())
        consts = (x for jaxpr in (self.traced, *called) for x in getattr(jaxpr, "consts", ()))
        found = {getattr(x, "dtype", None) for x in (*self.traced.in_avals, *consts)}
        return frozenset(filter(found.__contains__, narrow_formats.FLOAT))


def trace(
    fun: Callable[..., Any], in_tree: Any, avals: Sequence[jax.ShapeDtypeStruct], target: Target
) -> Program:
    """Traces the user's function, `fun(*args, **kwargs)`.

    Args:
      fun: a JAX function.
      in_tree: the tree structure of `(args, kwargs)`.
      avals: shape, dtype and weak type of each leaf; dimensions may be symbolic.
      target: what it will be lowered for.
    """
    args, kwargs = jax.tree_util.tree_unflatten(in_tree, avals)
    with jax_compat.under({"jax_disable_jit": False}):  # It would run calls, loops and branches.
        # A fresh function, so that JAX's caches hold it no longer than we do.
        fresh = callables.standing_for(lambda *a, **k: fun(*a, **k), fun)
        traced = jax.jit(fresh).trace(*args, **kwargs)
    own = with_own_constants(traced.jaxpr)
    jaxpr, outlined = pipeline.whole_program(own, target)
    return Program(jaxpr, traced.out_tree, outlined, own, callables.source(fun))
