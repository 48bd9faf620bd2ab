"""What need not wait for its step of a loop.

Loop invariants, the same in all steps, are computed once, before the loop. Contractions that only
depend on the elements that a scan goes through are computed for all steps at once: one large matrix
product is faster than many small ones.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.core.context import Context
from lowering.core.folding import called_jaxprs
from lowering.core.interpreter import full
from lowering.ops import dtypes
from lowering.ops.modes import is_compiled

# Cheap to make where they are used, and large where they are kept.
_NEVER = frozenset({"broadcast_in_dim", "iota"})

_CONTRACTIONS = frozenset({"dot_general", "conv_general_dilated"})

# All steps at once take memory: this many bytes, and as many more for each byte gone through.
_STEPS_BYTES = 1 << 24
_STEPS_RATIO = 8
# XLA fuses the reading of a step's results with what uses them, and does not vectorize that. For
# more elements than this it costs more than the product of a step.
_COMPILED_ELEMENTS = 1 << 13


def hoist(
    ctx: Context, body: jex_core.ClosedJaxpr, consts: Sequence[Any]
) -> tuple[jex_core.ClosedJaxpr, list[Any]]:
    """Lowers the equations of a body that depend on its constants alone.

    Args:
      ctx: the context of a loop.
      body: its body, a jaxpr whose first inputs are constants.
      consts: those constants.

    Returns:
      A jaxpr with the rest of the equations, and its constants, which are its first inputs.
    """
    invariant, rest = _split(body, len(consts))
    values = ctx.interpreter.run(invariant, *consts)
    return rest, [*consts, *map(full, values)]


@functools.lru_cache(maxsize=1024)
def _split(
    body: jex_core.ClosedJaxpr, num_consts: int
) -> tuple[jex_core.ClosedJaxpr, jex_core.ClosedJaxpr]:
    """The invariant equations of a body, and the others, as jaxprs without dead code.

    The first is a function of the constants. The second has its results as further constants.
    """
    consts, others = body.invars[:num_consts], body.invars[num_consts:]
    is_fixed = {*consts, *body.constvars}
    invariant, varying = [], []
    for eqn in _needed(body.eqns, lambda eqn: bool(eqn.effects), body.outvars):
        inputs = [var for var in eqn.invars if not isinstance(var, jex_core.Literal)]
        is_invariant = (
            bool(inputs)
            and is_fixed.issuperset(inputs)
            and not eqn.effects
            and eqn.primitive.name not in _NEVER
        )
        (invariant if is_invariant else varying).append(eqn)
        if is_invariant:
            is_fixed.update(eqn.outvars)
    used = _used(varying, body.outvars)
    results = [var for eqn in invariant for var in eqn.outvars if var in used]
    return (
        jax_compat.with_equations(body, consts, results, invariant),
        jax_compat.with_equations(body, [*consts, *results, *others], body.outvars, varying),
    )


def contract_ahead(
    ctx: Context,
    body: jex_core.ClosedJaxpr,
    consts: Sequence[Any],
    num_carry: int,
    xs: Sequence[Any],
    length: Any,
) -> tuple[jex_core.ClosedJaxpr, list[Any], list[Any]]:
    """Lowers the contractions of a scan's body that depend on no carried value, for all steps.

    Args:
      ctx: the context of a scan.
      body: its body. Its inputs are constants, carried values, and elements.
      consts: those constants.
      num_carry: the number of carried values.
      xs: the arrays whose elements the scan goes through.
      length: how many those are.

    Returns:
      A body without these contractions, the arrays whose elements it takes, and the abstract values
      of these arrays.
    """
    split = _split_contractions(body, len(consts), num_carry)
    elements = body.invars[len(consts) + num_carry :]
    if split is None or not _fits(split.results, elements, length):
        return body, list(xs), [_stacked(var.aval, length) for var in elements]
    avals = [
        *(var.aval for var in body.invars[: len(consts)]),
        *(_stacked(var.aval, length) for var in elements),
    ]
    results = ctx.lower(split.all_steps, *map(full, (*consts, *xs)), avals=avals)
    kept = [i for i, var in enumerate(elements) if var in split.rest.invars]
    stacked = [_stacked(var.aval, length) for var in split.rest.invars[len(consts) + num_carry :]]
    return split.rest, [*(xs[i] for i in kept), *results], stacked


@dataclasses.dataclass(frozen=True)
class _Split:
    """The body of a scan in two.

    Attributes:
      results: the variables of the body that are computed for all steps.
      all_steps: a function of the constants and the arrays, written in JAX, that computes them.
      rest: the rest of the body; its elements are those still needed, and the results.
    """

    results: Sequence[jex_core.Var]
    all_steps: Callable[..., Any]
    rest: jex_core.ClosedJaxpr


@functools.lru_cache(maxsize=1024)
def _split_contractions(
    body: jex_core.ClosedJaxpr, num_consts: int, num_carry: int
) -> _Split | None:
    """Splits the body of a scan; None if there is nothing to compute for all steps."""
    consts, elements = body.invars[:num_consts], body.invars[num_consts + num_carry :]
    fixed, known = {*consts, *body.constvars}, set(elements)
    candidates = []
    for eqn in body.eqns:
        inputs = _used([eqn])
        if not known.isdisjoint(inputs) and inputs <= known | fixed and _is_plain(eqn):
            candidates.append(eqn)
            known.update(eqn.outvars)
    # Of these, the contractions and what they need.
    ahead = _needed(candidates, lambda eqn: eqn.primitive.name in _CONTRACTIONS)
    if not ahead:
        return None
    later = [eqn for eqn in body.eqns if eqn not in ahead]
    used = _used(later, body.outvars)
    results = [var for eqn in ahead for var in eqn.outvars if var in used]
    one_step = jex_core.jaxpr_as_fun(
        jax_compat.with_equations(body, [*consts, *elements], results, ahead)
    )
    rest = jax_compat.with_equations(
        body,
        [
            *body.invars[: num_consts + num_carry],
            *(var for var in elements if var in used),
            *results,
        ],
        body.outvars,
        later,
    )
    in_axes = (None,) * num_consts + (0,) * len(elements)
    return _Split(results, jax.vmap(one_step, in_axes), rest)


def _is_plain(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation costs as much for all steps at once as for one after the other."""
    avals = [var.aval for var in (*eqn.invars, *eqn.outvars)]
    return (
        not eqn.effects
        and not any(True for _ in called_jaxprs(eqn))
        and not any(dtypes.is_key(aval.dtype) for aval in avals)
    )


def _fits(results: Sequence[jex_core.Var], elements: Sequence[jex_core.Var], length: Any) -> bool:
    """Whether the results of all steps are worth their memory; unknown dimensions count as one."""

    def count(shape):
        return math.prod(dim for dim in shape if isinstance(dim, int))

    def nbytes(variables):
        return sum(
            count((length, *var.aval.shape)) * dtypes.itemsize(var.aval.dtype) for var in variables
        )

    if is_compiled() and sum(count(var.aval.shape) for var in results) > _COMPILED_ELEMENTS:
        return False
    return nbytes(results) <= _STEPS_BYTES + _STEPS_RATIO * nbytes(elements)


def _stacked(aval: Any, length: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((length, *aval.shape), aval.dtype)


def _needed(
    eqns: Sequence[jex_core.JaxprEqn],
    is_wanted: Callable[[jex_core.JaxprEqn], bool],
    results: Sequence[Any] = (),
) -> list[jex_core.JaxprEqn]:
    """The equations that are wanted, those that give results, and those that these need."""
    needed, used = [], _used((), results)
    for eqn in reversed(eqns):
        if is_wanted(eqn) or not used.isdisjoint(eqn.outvars):
            needed.append(eqn)
            used |= _used([eqn])
    return needed[::-1]


def _used(eqns: Sequence[jex_core.JaxprEqn], outvars: Sequence[Any] = ()) -> set[jex_core.Var]:
    """The variables that equations and results use."""
    atoms = (*(atom for eqn in eqns for atom in eqn.invars), *outvars)
    return {atom for atom in atoms if not isinstance(atom, jex_core.Literal)}
