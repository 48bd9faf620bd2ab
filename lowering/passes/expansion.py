"""Replaces primitives that are not JAX's by calls of what they compute.

Libraries and users define primitives of their own, to give them derivatives or a batching rule.
Once a program is traced, only what such a primitive computes matters. Its `impl`, or the function
that its lowering to MLIR was made of, says that in JAX. It is traced to a jaxpr, which all other
passes understand.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import avals, jax_compat, registry
from lowering.passes.everywhere import Everywhere
from lowering.passes.jaxprs import Jaxpr
from lowering.targets import TARGETS


class _Expansion(jex_core.Primitive):
    """Calls the jaxpr that takes the place of an equation; its rule is in `rules.calls`."""

    multiple_results = True

    def bind(self, *operands: Any, jaxpr: jex_core.ClosedJaxpr) -> list[Any]:
        """Inlines the jaxpr where JAX traces or maps an expanded program again."""
        return jex_core.jaxpr_as_fun(jaxpr)(*operands)


EXPANSION = registry.new_primitive("expansion", _Expansion)
EXPANSION.def_effectful_abstract_eval(lambda *_, jaxpr: (jaxpr.out_avals, jaxpr.effects))

# A primitive may be computed by one of its kind on a smaller problem, down to this depth.
_MAX_DEPTH = 50

_INSTEAD = (
    "Register a rule with lowering.rule or lowering.decomposition, as "
    "g3doc/custom_primitives.md explains"
)

_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def expand(jaxpr: Jaxpr) -> Any:
    """Expands primitives without rules, in a jaxpr and in all jaxprs in it.

    It is done right after tracing, under the same settings of JAX: what a primitive computes may
    depend on them. Primitives that cannot be expanded stay as they are. `reason` says why, if they
    turn out to be needed; they may be in a branch for another platform.
    """
    return _Expander({}).jaxpr(jaxpr)


def reason(eqn: jex_core.JaxprEqn) -> str:
    """Why an equation without a rule was not expanded, and what to do instead."""
    refusal = _refusal(eqn)
    if refusal is not None:
        return refusal
    if _has_rule(eqn):
        return f"its rules are for other targets. {_INSTEAD}"
    why, instead = "no rule is known for it", _INSTEAD
    if registry.is_namesake(eqn.primitive):
        why = "it is not the primitive that is known by this name"
        instead = f"Give it a name of its own. {_INSTEAD}"
    try:
        _Expander({}).implementation(eqn)
    except _NotTraceableError as error:
        return f"{why}, and {error}. {instead}"
    return f"{why}. {instead}"


class _NotTraceableError(Exception):
    """The implementation of a primitive cannot be traced; the message says why."""


class _EndlessError(_NotTraceableError):
    """The implementation of a primitive binds the primitive itself."""


class _Expander(Everywhere):
    """Expands the primitives of a program, or those in the implementation of a primitive."""

    def __init__(self, within: Mapping[Any, jex_core.JaxprEqn]):
        """
        Args:
          within: the equations whose implementations the program is part of, by what they do.
        """
        super().__init__(self._expanded)
        self._within = within
        self._implementations: dict[Any, tuple[jex_core.JaxprEqn, jex_core.ClosedJaxpr]] = {}

    def _expanded(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        if _has_rule(eqn) or _refusal(eqn) is not None:
            return eqn
        key = _key(eqn)
        try:
            if key not in self._implementations:
                self._implementations[key] = eqn, self.implementation(eqn)
        except _EndlessError:
            if self._within:
                raise
            return eqn
        except _NotTraceableError:
            return eqn
        _, jaxpr = self._implementations[key]
        effects = eqn.effects | jaxpr.effects
        return eqn.replace(primitive=EXPANSION, params={"jaxpr": jaxpr}, effects=effects)

    def implementation(self, eqn: jex_core.JaxprEqn) -> jex_core.ClosedJaxpr:
        """What an equation computes, in primitives that have rules as far as possible."""
        key, failures = _key(eqn), []
        if key in self._within:
            raise _EndlessError("its impl is the primitive itself, on such operands")
        if len(self._within) >= _MAX_DEPTH:
            raise _EndlessError("its impl is in primitives of its kind, without an end")
        for fun in jax_compat.implementations(eqn.primitive):
            try:
                jaxpr = _traced(fun, eqn)
            except Exception as error:  # The code of a user may raise anything.
                first_line = str(error).strip().split("\n")[0]
                failures.append(f"its impl cannot be traced: {type(error).__name__}: {first_line}")
            else:
                return _Expander({**self._within, key: eqn}).jaxpr(jaxpr)
        raise _NotTraceableError(*failures[:1] or ["it has no impl in JAX that could be traced"])


def _has_rule(eqn: jex_core.JaxprEqn) -> bool:
    """Whether there is a rule for an equation, for any target or for PRNG keys."""
    if registry.facts(eqn.primitive.name).on_key_data is not None:
        return True
    return any(registry.rule_of(eqn, target) for target in TARGETS.values())


def _refusal(eqn: jex_core.JaxprEqn) -> str | None:
    """Why a primitive is lowered for no target, on purpose."""
    is_namesake = registry.is_namesake(eqn.primitive)
    return None if is_namesake else registry.facts(eqn.primitive.name).refusal


def _key(eqn: jex_core.JaxprEqn) -> Any:
    """A key of what an equation computes, valid as long as the equation exists."""
    operands = tuple(str(var.aval) for var in eqn.invars)
    return eqn.primitive, operands, *((k, _identity(v)) for k, v in sorted(eqn.params.items()))


def _identity(value: Any) -> Any:
    """A parameter, told apart from others by identity if it is an object."""
    if isinstance(value, tuple):
        return tuple(map(_identity, value))
    # 1, 1.0 and True are equal.
    return (type(value), value) if isinstance(value, int | float | str) else id(value)


def _traced(fun: Callable[..., Any], eqn: jex_core.JaxprEqn) -> jex_core.ClosedJaxpr:
    """The jaxpr of an implementation of the primitive of an equation, on its operands."""
    params = eqn.primitive.get_bind_params(eqn.params)
    structs = [avals.struct(var.aval) for var in eqn.invars]
    settings = {"jax_disable_jit": False}  # It would run calls, loops and branches.
    if any(var.aval.dtype in _WIDE for var in (*eqn.invars, *eqn.outvars)):
        # A part of the program may have 64-bit types although the user's setting is off.
        settings["jax_enable_x64"] = True
    with jax_compat.source_and_settings(eqn), jax_compat.under(settings):
        traced = jax.jit(lambda *operands: fun(*operands, **params)).trace(*structs)
    jaxpr = jax_compat.eliminate_dead_code(traced.jaxpr)
    results, expected = jaxpr.out_avals, [var.aval for var in eqn.outvars]
    if [(x.shape, x.dtype) for x in results] != [(x.shape, x.dtype) for x in expected]:
        raise TypeError(f"it returns {_types(results)} where {_types(expected)} were promised")
    return jaxpr


def _types(avals: Any) -> str:
    return ", ".join(str(aval.str_short(short_dtypes=True)) for aval in avals) or "nothing"
