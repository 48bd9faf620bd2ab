"""Checks what each pass makes of a jaxpr: that it is well formed, and of the types it says."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.passes import pipeline
from lowering.passes.jaxprs import Jaxpr
from lowering.targets import TF, Target
from tests.passes.meanings import known_to_jax

_run = pipeline.steps


def install() -> None:
    """Has each pass of this process checked from now on."""
    pipeline.steps = steps


def steps(
    passes: Sequence[pipeline.Pass], jaxpr: Jaxpr, setting: pipeline.Setting
) -> Iterator[tuple[pipeline.Pass, Any]]:
    """As `pipeline.steps`, with a check after each pass that has changed the jaxpr."""
    before = jaxpr
    for each, after in _run(passes, jaxpr, setting):
        try:
            check(before, after, each.legal_avals, setting.target)
        except Exception as error:
            raise AssertionError(f"{each.name!r} makes a wrong jaxpr: {error}\n{after}") from error
        yield each, after
        before = after


def check(
    before: Jaxpr,
    after: Jaxpr,
    legal_avals: Callable[[Any, Target], Sequence[Any]] | None = None,
    target: Target = TF,
) -> None:
    """Checks what a pass has made of a jaxpr.

    Each variable is defined once, and before it is used. Operands of equations that are new fit
    their parameters and the jaxprs among these, and results are what JAX infers from the operands.
    Arguments and results of the whole keep their types.

    Args:
      before: the jaxpr before the pass.
      after: the jaxpr after it.
      legal_avals: the abstract values of what has come to stand for an argument or a result.
      target: what the jaxpr is lowered for.

    Raises:
      AssertionError, TypeError: if something does not fit.
    """
    if after is before:
        return
    for old, new in ((before.invars, after.invars), (before.outvars, after.outvars)):
        avals = [x.aval for x in old]
        if legal_avals is not None:
            avals = [legal for aval in avals for legal in legal_avals(aval, target)]
        assert types([x.aval for x in new]) == types(avals)
    assert len(after.constvars) == len(getattr(after, "consts", after.constvars))
    defined: set[Any] = set()

    def define(variables):
        assert defined.isdisjoint(variables), f"defined again: {variables}"
        defined.update(variables)

    def use(atoms):
        used = {x for x in atoms if not isinstance(x, jex_core.Literal)}
        assert used <= defined, f"used before they are defined: {used - defined}"

    define(after.constvars)
    define(after.invars)
    known = set(map(id, before.eqns))
    for eqn in after.eqns:
        use(eqn.invars)
        define(eqn.outvars)
        if id(eqn) not in known:
            jax_compat.check_equation(known_to_jax(eqn)[0])
    use(after.outvars)


def types(avals: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Shape and dtype of each; no weak types, which mean nothing to a traced program."""
    return [(getattr(x, "shape", None), getattr(x, "dtype", None)) for x in avals]
