"""Traces JAX functions of this package to closed jaxprs."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.passes.expansion import expand
from lowering.passes.plain import plain


def trace_ours(
    fun: Callable[..., Any],
    avals: Sequence[jax.ShapeDtypeStruct],
    params: Iterable[tuple[str, Any]] = (),
) -> tuple[jex_core.ClosedJaxpr, bool]:
    """Traces a function of this package, under settings of JAX that are ours, not the user's.

    Args:
      fun: a function of arrays and of keyword parameters.
      avals: shape and dtype of each array.
      params: the parameters, as pairs of name and value.

    Returns:
      The closed jaxpr, without dead code, and whether `fun` has a single result, not a sequence.
    """
    with jax_compat.our_settings(), jax_compat.without_source():
        traced = jax.jit(lambda *operands: fun(*operands, **dict(params))).trace(*avals)
        jaxpr = expand(jax_compat.eliminate_dead_code(traced.jaxpr))
    return plain(jaxpr), jax.tree_util.treedef_is_leaf(traced.out_tree)


# Cached by the function object and its hashable arguments. Nothing of the user's may be among them:
# that is cached with the program, in `ProgramCaches.decompositions`.
trace_ours_once = functools.lru_cache(maxsize=1024)(trace_ours)
