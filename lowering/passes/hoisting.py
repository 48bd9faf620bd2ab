"""Moves loop-invariant work, and contractions of all steps, out of loops.

Loop invariants are computed once, before the loop. Contractions that depend only on the elements
that a scan goes through are computed for all steps at once: one large matrix product is faster than
many small ones. Row of the bench that shows the gain: lstm, batch 1, graph.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core

from lowering import avals, jax_compat
from lowering.caches import PerJaxpr
from lowering.passes.jaxprs import Jaxpr, called_jaxprs, needed, used
from lowering.passes.rewriting import Rewriter, replace_equations
from lowering.passes.trace import trace_ours
from lowering.registry import Trait, has_trait
from lowering.targets import Mode

# All steps at once take memory: this many bytes, and as many more for each byte gone through.
_STEPS_BYTES = 1 << 24
_STEPS_RATIO = 8
# XLA fuses the reading of a step's results with what uses them, and does not vectorize that. For
# more elements than this it costs more than the product of a step.
_COMPILED_ELEMENTS = 1 << 13


def hoist_invariants(jaxpr: Jaxpr) -> Jaxpr:
    """Moves equations that depend on the constants of a loop alone in front of the loop."""
    return replace_equations(jaxpr, {"scan": _hoist_scan, "while": _hoist_while})


def contract_ahead(jaxpr: Jaxpr, mode: Mode) -> Jaxpr:
    """Moves contractions that depend on no carried value of a scan in front of it, for all steps.

    Scans that are unrolled keep theirs, as do those whose results for all steps take much memory.
    """
    return replace_equations(jaxpr, {"scan": functools.partial(_contract_scan, mode=mode)})


def _hoist_scan(new, eqn):
    num_consts, num_carry = jax_compat.scan_counts(eqn.params)
    consts, others = eqn.invars[:num_consts], eqn.invars[num_consts:]
    consts, body = _hoist(new, eqn, eqn.params["jaxpr"], consts)
    params = jax_compat.with_scan_body(eqn.params, body, len(consts), num_carry)
    return eqn.replace(invars=[*consts, *others], params=params)


def _hoist_while(new, eqn):
    params = eqn.params
    end = params["cond_nconsts"] + params["body_nconsts"]
    cond_consts, body_consts = eqn.invars[: params["cond_nconsts"]], eqn.invars[:end]
    body_consts = body_consts[params["cond_nconsts"] :]
    cond_consts, cond = _hoist(new, eqn, params["cond_jaxpr"], cond_consts)
    body_consts, body = _hoist(new, eqn, params["body_jaxpr"], body_consts)
    changed = {
        "cond_jaxpr": cond,
        "cond_nconsts": len(cond_consts),
        "body_jaxpr": body,
        "body_nconsts": len(body_consts),
    }
    return eqn.replace(
        invars=[*cond_consts, *body_consts, *eqn.invars[end:]], params={**params, **changed}
    )


def _hoist(new: Rewriter, eqn, body: jex_core.ClosedJaxpr, consts: Sequence[Any]):
    """Adds the invariant equations of a body; returns the constants of the rest, and the rest."""
    invariant, rest = _split(body, len(consts))
    results = new.inline(invariant, new.read(consts), eqn)
    return [*consts, *results], rest


def _split(
    body: jex_core.ClosedJaxpr, num_consts: int
) -> tuple[jex_core.ClosedJaxpr, jex_core.ClosedJaxpr]:
    """The invariant equations of a body, and the others, as jaxprs without dead code.

    The first is a function of the constants. The second has its results as further constants.
    Equations that must not be hoisted are in the second, and in the first if others need them.
    """
    consts, others = body.invars[:num_consts], body.invars[num_consts:]
    is_fixed = {*consts, *body.constvars}
    invariant: list[jex_core.JaxprEqn] = []
    varying: list[jex_core.JaxprEqn] = []
    for eqn in needed(body.eqns, lambda eqn: bool(eqn.effects), body.outvars):
        is_same_each_time = not eqn.effects and not _draws(eqn)
        is_invariant = is_same_each_time and is_fixed.issuperset(used([eqn]))
        (invariant if is_invariant else varying).append(eqn)
        if is_invariant:
            is_fixed.update(eqn.outvars)
    read_later = used(varying, body.outvars)
    for eqn in reversed(invariant):
        # Results of literals alone are known in the body as well as before the loop.
        is_hoisted = used([eqn]) and not has_trait(eqn.primitive.name, Trait.NOT_HOISTED)
        if not is_hoisted and not read_later.isdisjoint(eqn.outvars):
            varying.insert(0, eqn)
            read_later = (read_later | used([eqn])).difference(eqn.outvars)
    results = [var for eqn in invariant for var in eqn.outvars if var in read_later]
    invariant = needed(invariant, lambda eqn: False, results)
    return (
        jax_compat.with_equations(body, consts, results, invariant),
        jax_compat.with_equations(body, [*consts, *results, *others], body.outvars, varying),
    )


def _draws(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation, or one that it calls, gives different results each time."""
    return has_trait(eqn.primitive.name, Trait.DRAWS) or any(map(_has_draws, called_jaxprs(eqn)))


@PerJaxpr
def _has_draws(jaxpr: Jaxpr) -> bool:
    return any(map(_draws, jaxpr.eqns))


def _contract_scan(new, eqn, *, mode):
    num_consts, num_carry = jax_compat.scan_counts(eqn.params)
    body, length = eqn.params["jaxpr"], eqn.params["length"]
    if isinstance(length, int) and eqn.params["unroll"] >= length:
        return eqn
    split = _split_contractions(body, num_consts, num_carry)
    elements = body.invars[num_consts + num_carry :]
    if split is None or not _fits(split.results, elements, length, mode):
        return eqn
    consts, xs = eqn.invars[:num_consts], eqn.invars[num_consts + num_carry :]
    structs = (
        *(avals.struct(var.aval) for var in body.invars[:num_consts]),
        *(jax.ShapeDtypeStruct((length, *var.aval.shape), var.aval.dtype) for var in elements),
    )
    all_steps, _ = trace_ours(split.all_steps, structs)
    results = new.inline(all_steps, new.read([*consts, *xs]), eqn)
    kept = [x for x, var in zip(xs, elements, strict=True) if var in split.rest.invars]
    return eqn.replace(
        invars=[*eqn.invars[: num_consts + num_carry], *kept, *results],
        params=jax_compat.with_scan_body(eqn.params, split.rest, num_consts, num_carry),
    )


@dataclasses.dataclass(frozen=True)
class _Split:
    """The body of a scan, split in two.

    Attributes:
      results: the variables of the body that are computed for all steps.
      all_steps: a function of the constants and the arrays, written in JAX, that computes them.
      rest: the rest of the body; its elements are those still needed, and the results.
    """

    results: Sequence[jex_core.Var]
    all_steps: Callable[..., Any]
    rest: jex_core.ClosedJaxpr


def _split_contractions(
    body: jex_core.ClosedJaxpr, num_consts: int, num_carry: int
) -> _Split | None:
    """Splits the body of a scan; None if there is nothing to compute for all steps."""
    consts, elements = body.invars[:num_consts], body.invars[num_consts + num_carry :]
    fixed, known = {*consts, *body.constvars}, set(elements)
    candidates = []
    for eqn in body.eqns:
        inputs = used([eqn])
        if not known.isdisjoint(inputs) and inputs <= known | fixed and _is_plain(eqn):
            candidates.append(eqn)
            known.update(eqn.outvars)
    # Only the contractions among these, and what they depend on.
    ahead = needed(candidates, lambda eqn: has_trait(eqn.primitive.name, Trait.CONTRACTION))
    if not ahead:
        return None
    later = [eqn for eqn in body.eqns if eqn not in ahead]
    read_later = used(later, body.outvars)
    results = [var for eqn in ahead for var in eqn.outvars if var in read_later]
    one_step = jex_core.jaxpr_as_fun(
        jax_compat.with_equations(body, [*consts, *elements], results, ahead)
    )
    kept = [var for var in elements if var in read_later]
    invars = [*body.invars[: num_consts + num_carry], *kept, *results]
    rest = jax_compat.with_equations(body, invars, body.outvars, later)
    in_axes = (None,) * num_consts + (0,) * len(elements)
    return _Split(results, jax.vmap(one_step, in_axes), rest)


def _is_plain(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation costs as much for all steps at once as for one after the other."""
    return (
        not eqn.effects
        and not _draws(eqn)
        and jax_compat.can_be_mapped(eqn.primitive)
        and not any(True for _ in called_jaxprs(eqn))
    )


def _fits(
    results: Sequence[jex_core.Var], elements: Sequence[jex_core.Var], length: Any, mode: Mode
) -> bool:
    """Whether the results of all steps are worth their memory; unknown dimensions count as one."""

    def count(shape):
        return math.prod(dim for dim in shape if isinstance(dim, int))

    def nbytes(variables):
        return sum(
            count((length, *var.aval.shape)) * avals.itemsize(var.aval.dtype) for var in variables
        )

    if mode is Mode.COMPILED and sum(count(x.aval.shape) for x in results) > _COMPILED_ELEMENTS:
        return False
    return nbytes(results) <= _STEPS_BYTES + _STEPS_RATIO * nbytes(elements)
