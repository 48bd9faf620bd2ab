"""A JAX function, traced and prepared to be lowered."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np

from lowering import callables, jax_compat, narrow_formats
from lowering.passes import pipeline
from lowering.passes.jaxprs import Jaxpr, count_calls
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
        ranks = (len(getattr(x.aval, "shape", ())) for x in _variables(_jaxprs(self.jaxpr)))
        return max(ranks, default=0)

    @property
    def parameters(self) -> list[Any]:
        """The arrays of floats that it closes over, which are weights of a model."""
        arrays = (x for jaxpr in _jaxprs(self.traced) for x in getattr(jaxpr, "consts", ()))
        return [x for x in arrays if jnp.issubdtype(x.dtype, jnp.floating)]

    @functools.cached_property
    def narrow_dtypes(self) -> frozenset[np.dtype]:
        """The dtypes of `narrow_formats` that it has, as JAX has traced it."""
        jaxprs = _jaxprs(self.traced)
        arrays = [x for jaxpr in jaxprs for x in getattr(jaxpr, "consts", ())]
        arrays += [x.aval for x in _variables(jaxprs)]
        found = {getattr(x, "dtype", None) for x in arrays}
        return frozenset(filter(found.__contains__, narrow_formats.NARROW))


def _jaxprs(jaxpr: jex_core.ClosedJaxpr) -> list[Jaxpr]:
    """A jaxpr, and all that it calls."""
    return [jaxpr, *(called for called, _ in count_calls(jaxpr).values())]


def _variables(jaxprs: Iterable[Jaxpr]) -> Iterator[jex_core.Var]:
    """The arguments of jaxprs, and the results of their equations."""
    for jaxpr in jaxprs:
        yield from getattr(jaxpr, "jaxpr", jaxpr).invars
        for eqn in jaxpr.eqns:
            yield from eqn.outvars


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
