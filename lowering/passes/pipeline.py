"""The passes in their order: from the jaxpr that JAX traces to the jaxpr that is lowered."""

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.passes.expansion import expand
from lowering.passes.flattening import flatten_calls
from lowering.passes.fusion import PATTERNS, SEARCHES, mark_operands
from lowering.passes.hoisting import contract_ahead, hoist_invariants
from lowering.passes.indices import with_index_ops
from lowering.passes.inlining import inline_calls, outlined
from lowering.passes.jaxprs import Jaxpr, count_calls
from lowering.passes.keeping import keep_axes
from lowering.passes.legalize.promotion import has_halves, promote_halves
from lowering.passes.literals import convert_literals
from lowering.passes.natural import (
    LATE_PATTERNS,
    LATE_SEARCHES,
    NATURAL_PATTERNS,
    NATURAL_SEARCHES,
    PATTERNS_OF_HALVES,
)
from lowering.passes.patterns import fuse
from lowering.passes.plain import plain
from lowering.passes.references import without_references
from lowering.passes.remembering import PerJaxpr
from lowering.passes.tidying import tidy
from lowering.passes.unrolling import unroll_short_scans, widen_steps
from lowering.targets import TF, Mode, Target


def whole_program(jaxpr: jex_core.ClosedJaxpr) -> tuple[jex_core.ClosedJaxpr, frozenset[int]]:
    """What is done once to a traced function and all jaxprs in it.

    Returns:
      The jaxpr, without references and dead code, plain, and in primitives that have rules where
      possible; and the identities of the jaxprs that become functions.
    """
    jaxpr = without_references(jaxpr)
    jaxpr = jax_compat.eliminate_dead_code(jaxpr)
    jaxpr = expand(jaxpr)
    jaxpr = plain(jaxpr)
    return jaxpr, outlined(jaxpr)


def optimized(jaxpr: Jaxpr, mode: Mode, functions: frozenset[int], target: Target = TF) -> Jaxpr:
    """What is done to each jaxpr before its equations are lowered: a program, a body, a branch.

    It is done once, and remembered for as long as the jaxpr lives.

    Args:
      jaxpr: a jaxpr. Those among the parameters of its equations stay as they are; they are
        optimized when they are lowered.
      mode: how TensorFlow executes the ops that the jaxpr becomes.
      functions: the identities of the jaxprs of which calls stay calls, to be functions of the
        graph.
      target: what the jaxpr is lowered for.

    Returns:
      A jaxpr with the same results, of the same primitives and of those that passes introduce.
    """
    # Jaxprs of this package outlive programs, and have nothing to do with the functions of these.
    functions = functions & _called(jaxpr) if functions else functions
    return _optimized(jaxpr, mode, functions, target)


def forget() -> None:
    """Forgets what has been optimized, so that passes that have changed are run."""
    _optimized.clear()


@PerJaxpr
def _called(jaxpr: Jaxpr) -> frozenset[int]:
    """The identities of all jaxprs that a jaxpr calls."""
    return frozenset(count_calls(jaxpr))


@PerJaxpr
def _optimized(jaxpr: Jaxpr, mode: Mode, functions: frozenset[int], target: Target) -> Jaxpr:
    in_graph = mode is not Mode.EAGER
    if in_graph:
        jaxpr = flatten_calls(jaxpr)
    jaxpr = inline_calls(jaxpr, functions if in_graph else frozenset())
    jaxpr = hoist_invariants(jaxpr)
    jaxpr = unroll_short_scans(jaxpr, target)
    jaxpr = contract_ahead(jaxpr, mode)
    jaxpr = widen_steps(jaxpr, mode, target)
    jaxpr = convert_literals(jaxpr)
    if target.emulates("bfloat16") and has_halves(jaxpr):
        # Patterns with constants are found in the dtype to which these are rounded.
        jaxpr = fuse(jaxpr, (*PATTERNS_OF_HALVES, *NATURAL_PATTERNS), {})
        jaxpr = convert_literals(promote_halves(jaxpr))
    if target.is_natural:
        jaxpr = fuse(jaxpr, NATURAL_PATTERNS, NATURAL_SEARCHES)
    jaxpr = fuse(jaxpr, PATTERNS, SEARCHES)
    if target.is_natural:
        jaxpr = tidy(jaxpr)
        jaxpr = keep_axes(jaxpr)
        jaxpr = with_index_ops(jaxpr)
        jaxpr = fuse(jaxpr, LATE_PATTERNS, LATE_SEARCHES)
    return mark_operands(jaxpr)
