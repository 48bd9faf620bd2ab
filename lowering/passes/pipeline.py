"""The passes in their order: from the jaxpr that JAX traces to the jaxpr that is lowered."""

import functools

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.passes.flattening import flatten_calls
from lowering.passes.fusion import PATTERNS, SEARCHES, mark_operands
from lowering.passes.hoisting import contract_ahead, hoist_invariants
from lowering.passes.inlining import inline_calls, outlined
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.patterns import fuse
from lowering.passes.unrolling import unroll_short_scans, widen_steps
from lowering.targets import Mode


def whole_program(jaxpr: jex_core.ClosedJaxpr) -> tuple[jex_core.ClosedJaxpr, frozenset[int]]:
    """What is done once to a traced function and all jaxprs in it.

    Returns:
      The jaxpr without dead code, and the identities of the jaxprs that become functions.
    """
    jaxpr = jax_compat.eliminate_dead_code(jaxpr)
    return jaxpr, outlined(jaxpr)


@functools.lru_cache(maxsize=1024)
def optimized(jaxpr: Jaxpr, mode: Mode, functions: frozenset[int]) -> Jaxpr:
    """What is done to each jaxpr before its equations are lowered: a program, a body, a branch.

    Args:
      jaxpr: a jaxpr. Those among the parameters of its equations stay as they are; they are
        optimized when they are lowered.
      mode: how TensorFlow executes the ops that the jaxpr becomes.
      functions: the identities of the jaxprs of which calls stay calls, to be functions of the
        graph.

    Returns:
      A jaxpr with the same results, of the same primitives and of those that passes introduce.
    """
    in_graph = mode is not Mode.EAGER
    if in_graph:
        jaxpr = flatten_calls(jaxpr)
    jaxpr = inline_calls(jaxpr, functions if in_graph else frozenset())
    jaxpr = hoist_invariants(jaxpr)
    jaxpr = unroll_short_scans(jaxpr)
    jaxpr = contract_ahead(jaxpr, mode)
    jaxpr = widen_steps(jaxpr, mode)
    jaxpr = fuse(jaxpr, PATTERNS, SEARCHES)
    return mark_operands(jaxpr)
