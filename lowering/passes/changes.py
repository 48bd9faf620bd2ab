"""What passes make of a program, as text."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.passes import pipeline
from lowering.passes.jaxprs import Jaxpr, called_jaxprs
from lowering.passes.pipeline import Pass, Setting
from lowering.registry import Trait, facts
from lowering.targets import Mode, Target


def lines(traced: jex_core.ClosedJaxpr, target: Target) -> Iterator[str]:
    """The lines that say what each pass makes of a program, and of the jaxprs in it.

    Args:
      traced: the program as JAX has traced it.
      target: what it is lowered for, in a graph.
    """
    yield from ("the program, as JAX has traced it:", *_text(traced), "")
    program = yield from _each(pipeline.WHOLE_PROGRAM, traced, Setting(target=target))
    setting = Setting(Mode.GRAPH, target, pipeline.functions(program, target))
    pending = {id(program): ("", program)}
    done: dict[int, Jaxpr] = {}
    while pending:
        key, (name, jaxpr) = pending.popitem()
        done[key] = jaxpr
        if name:
            yield from ("", f"{name}:", *_text(jaxpr), "")
        jaxpr = yield from _each(pipeline.PASSES, jaxpr, setting)
        for eqn in reversed(jaxpr.eqns):
            pending.update({id(x): (_name(eqn), x) for x in _lowered(eqn) if id(x) not in done})


def _each(passes: Sequence[Pass], jaxpr: Any, setting: Setting) -> Generator[str, None, Any]:
    """The lines of each pass that is run; returns the last jaxpr."""
    for each, after in pipeline.steps(passes, jaxpr, setting):
        if after is jaxpr or str(after) == str(jaxpr):
            yield f"{each.name}: nothing changes"
        else:
            yield from (f"{each.name}:", *_text(after))
        jaxpr = after
    return jaxpr


def _lowered(eqn: jex_core.JaxprEqn) -> Sequence[Jaxpr]:
    """The jaxprs of an equation that are lowered as they are: bodies, branches and functions."""
    known = facts(eqn.primitive.name)
    is_lowered = Trait.CONTROL_FLOW in known.traits or known.called is not None
    return list(called_jaxprs(eqn)) if is_lowered else []


def _name(eqn: jex_core.JaxprEqn) -> str:
    line = jax_compat.source_line(eqn)
    return f"in {eqn.primitive.name}" + (f", {line}" if line else "")


def _text(jaxpr: Any) -> Sequence[str]:
    return [f"  {line}" for line in str(jaxpr).splitlines()]
