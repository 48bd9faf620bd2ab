"""From a JAX function and the shapes of its arguments to a closed jaxpr."""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.core.folding import Folder, called_jaxprs


@dataclasses.dataclass(frozen=True)
class Program:
    """A traced JAX function.

    Attributes:
      jaxpr: the closed jaxpr, without dead code.
      out_tree: the structure of the function's result.
      calls: how often each jaxpr is called in the program (once, or more), by identity.
      folder: what has been folded in this program, kept with it so that it is folded once.
    """

    jaxpr: jex_core.ClosedJaxpr
    out_tree: jax.tree_util.PyTreeDef
    calls: Mapping[int, int]
    folder: Folder = dataclasses.field(default_factory=Folder)


def trace(fun: Callable[..., Any], in_tree: Any, avals: Sequence[jax.ShapeDtypeStruct]) -> Program:
    """Traces `fun(*args, **kwargs)`.

    Args:
      fun: a JAX function.
      in_tree: the tree structure of `(args, kwargs)`.
      avals: shape, dtype and weak type of each leaf; dimensions may be symbolic.
    """
    args, kwargs = jax.tree_util.tree_unflatten(in_tree, avals)
    # A fresh function, so that JAX's caches hold it no longer than we do.
    traced = jax.jit(lambda *a, **k: fun(*a, **k)).trace(*args, **kwargs)
    jaxpr = jax_compat.eliminate_dead_code(traced.jaxpr)
    return Program(jaxpr, traced.out_tree, _count_calls(jaxpr))


def _count_calls(jaxpr: jex_core.ClosedJaxpr) -> collections.Counter[int]:
    """How often each jaxpr is called in a jaxpr (once, or more), by identity."""
    counts: collections.Counter[int] = collections.Counter()

    def walk(caller):
        for eqn in caller.eqns:
            for called in called_jaxprs(eqn):
                counts[id(called)] += 1
                # Its own calls count twice if it is called twice; more makes no difference.
                if counts[id(called)] <= 2:
                    walk(called)

    walk(jaxpr)
    return counts


def is_long(jaxpr: jex_core.ClosedJaxpr, limit: int) -> bool:
    """Whether a jaxpr and all that it calls have at least `limit` equations."""

    def rest(caller, left):
        for eqn in caller.eqns:
            left -= 1
            for called in called_jaxprs(eqn):
                left = rest(called, left)
            if left <= 0:
                break
        return left

    return rest(jaxpr, limit) <= 0
