"""Checks what each pass makes of a jaxpr: that it is well formed, and of the types it says."""

from collections.abc import Iterator, Sequence
from typing import Any

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.avals import is_complex, real_dtype
from lowering.passes import pipeline
from lowering.passes.jaxprs import Jaxpr
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
            check(before, after, each.splits)
        except Exception as error:
            raise AssertionError(f"{each.name!r} makes a wrong jaxpr: {error}\n{after}") from error
        yield each, after
        before = after


def check(before: Jaxpr, after: Jaxpr, splits: bool = False) -> None:
    """Checks what a pass has made of a jaxpr.

    Each variable is defined once, and before it is used. Operands of equations that are new fit
    their parameters and the jaxprs among these, and results are what JAX infers from the operands.
    Arguments and results of the whole keep their types.

    Args:
      before: the jaxpr before the pass.
      after: the jaxpr after it.
      splits: whether complex arguments and results have become two real ones each.

    Raises:
      AssertionError, TypeError: if something does not fit.
    """
    if after is before:
        return
    for old, new in ((before.invars, after.invars), (before.outvars, after.outvars)):
        assert types(new) == (split(types(old)) if splits else types(old))
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


def split(types: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Types with two of real numbers in place of each of complex ones."""
    return [
        part
        for shape, dtype in types
        for part in ([(shape, real_dtype(dtype))] * 2 if is_complex(dtype) else [(shape, dtype)])
    ]


def types(atoms: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Shape and dtype of each; no weak types, which mean nothing to a traced program."""
    return [(getattr(x.aval, "shape", None), getattr(x.aval, "dtype", None)) for x in atoms]
