"""Chooses how many elements a step of a scan takes: its parameter `unroll`.

A loop costs time itself, beside its body: about as much as thirty ops. XLA's loops cost little, and
run no faster if they are unrolled. Row of the bench that shows the gain: lstm, batch 1, graph.
"""

from collections.abc import Callable

import jax.extend.core as jex_core

from lowering.passes.jaxprs import Jaxpr, is_long
from lowering.passes.rewriting import replace_equations
from lowering.registry import Trait, has_trait
from lowering.targets import Mode, Target

# A scan whose steps have no more equations than this, all together, is unrolled.
_UNROLLED_EQUATIONS = 64

# A step takes as many elements as have no more equations than this, all together.
_STEP_EQUATIONS = 48
_STEP_ELEMENTS = 8

# An equation that becomes many ops of a runtime counts as this many.
_LONG = 32


def unroll_short_scans(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Unrolls scans over few elements, with few equations for each."""
    count = _counts(target)

    def unroll(_, eqn):
        length = eqn.params["length"]
        return _with_unroll(eqn, length) if _is_short(eqn.params["jaxpr"], length, count) else None

    return replace_equations(jaxpr, {"scan": unroll})


def widen_steps(jaxpr: Jaxpr, mode: Mode, target: Target) -> Jaxpr:
    """Lets a step of a scan take several elements where little is done for each.

    A scan for which the user has asked for a number of elements keeps it.
    """
    count_of = _counts(target)

    def widen(_, eqn):
        body, length = eqn.params["jaxpr"], eqn.params["length"]
        if eqn.params["unroll"] > 1 or not isinstance(length, int):
            return None
        counts = (n for n in range(_STEP_ELEMENTS, 1, -1) if length % n == 0)
        count = next((n for n in counts if not is_long(body, _STEP_EQUATIONS // n, count_of)), 1)
        return _with_unroll(eqn, count)

    return jaxpr if mode is Mode.COMPILED else replace_equations(jaxpr, {"scan": widen})


def _counts(target: Target) -> Callable[[jex_core.JaxprEqn], int]:
    """The function that says how many equations an equation counts as."""
    if target.has_tensorflow_kernels:
        return lambda eqn: 1
    return lambda eqn: _LONG if has_trait(eqn.primitive.name, Trait.LONG) else 1


def _is_short(body: Jaxpr, length, count: Callable[[jex_core.JaxprEqn], int]) -> bool:
    return isinstance(length, int) and (
        length <= 1 or not is_long(body, _UNROLLED_EQUATIONS // length + 1, count)
    )


def _with_unroll(eqn: jex_core.JaxprEqn, unroll: int) -> jex_core.JaxprEqn:
    return eqn.replace(params={**eqn.params, "unroll": unroll})
