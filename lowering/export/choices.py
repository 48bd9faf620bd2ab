"""Which choices of a program fall otherwise when its numbers are off by a few quantization steps.

A mixture of experts chooses by scores. Where two are about equal, a quantized model may choose
another expert than JAX, and its results are then far from JAX's, though it computes them well.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import jax_compat
from lowering.export.entry import Entry
from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import called_jaxprs

# Primitives whose integer results say which of some numbers are chosen.
_CHOOSING = frozenset({"approx_top_k", "argmax", "argmin", "sort", "top_k"})


def unsteady(entry: Entry, spreads: Callable[[Entry], Sequence[np.ndarray]]) -> list[str]:
    """The choices that fall otherwise, as `top_k` and the user's line.

    Args:
      entry: an entry; its samples are the inputs.
      spreads: how far each output of an entry may be from JAX's if it is quantized.
    """
    arguments = entry.reference.arguments(entry.samples)
    if not any(_choices(jax.make_jaxpr(entry.reference.fun)(*arguments))):
        return []
    jaxpr = inline_calls(_traced(entry.reference.fun, arguments), frozenset())
    choices = [eqn for eqn in jaxpr.eqns if _is_choice(eqn)]
    chosen = [_index(eqn) for eqn in choices]
    watched = jax_compat.with_equations(jaxpr, jaxpr.jaxpr.invars, chosen, jaxpr.eqns)
    reference = dataclasses.replace(
        entry.reference,
        fun=lambda *args: jex_core.jaxpr_as_fun(watched)(*jax.tree.leaves(args)),
        results=lambda found: list(map(np.asarray, found)),
    )
    moved = spreads(dataclasses.replace(entry, reference=reference))
    found = [_named(eqn) for eqn, x in zip(choices, moved, strict=True) if np.any(x)]
    return list(dict.fromkeys(found))


def _traced(fun: Callable[..., Any], arguments: tuple[Any, ...]) -> jex_core.ClosedJaxpr:
    """The program; scans are unrolled unless it has other loops, to see what is chosen in them."""
    with contextlib.suppress(Exception), jax.disable_jit():
        return jax.make_jaxpr(fun)(*arguments)
    return jax.make_jaxpr(fun)(*arguments)


def _choices(jaxpr: Any) -> Iterator[jex_core.JaxprEqn]:
    for eqn in jaxpr.eqns:
        if _is_choice(eqn):
            yield eqn
        for inner in called_jaxprs(eqn):
            yield from _choices(inner)


def _is_choice(eqn: jex_core.JaxprEqn) -> bool:
    if eqn.primitive.name not in _CHOOSING:
        return False
    by_floats = jax.dtypes.issubdtype(eqn.invars[0].aval.dtype, np.floating)
    return by_floats and _index(eqn) is not None


def _index(eqn: jex_core.JaxprEqn) -> Any:
    """The result that says what is chosen; None if there is none."""
    integers = (x for x in eqn.outvars if jax.dtypes.issubdtype(x.aval.dtype, np.integer))
    return next(integers, None)


def _named(eqn: jex_core.JaxprEqn) -> str:
    line = jax_compat.source_line(eqn)
    return f"`{eqn.primitive.name}`" + (f" at {line}" if line else "")
