"""Choices of the first case whose condition holds, as a chain of choices between two.

`jnp.select` stacks the conditions, behind one that never holds and stands for the default, and
chooses by the index of the first that does.
"""

from collections.abc import Sequence
from typing import Any

import jax.extend.core as jex_core

from lowering.passes.fusion.patterns import Group, Search


def _first_that_holds(
    select: jex_core.JaxprEqn, group: Group
) -> Sequence[jex_core.JaxprEqn] | None:
    """As `jnp.select`: a `select_n` for each condition, the first one last."""
    argmax = group.maker(select.invars[0], "argmax")
    stack = None if argmax is None else group.maker(argmax.invars[0], "stack")
    if argmax is None or stack is None or argmax.params["axes"] != (stack.params["axis"],):
        return None
    never = group.maker(stack.invars[0], "broadcast_in_dim")
    default, *cases = select.invars[1:]
    if never is None or not _is_false(never.invars[0]) or len(stack.invars) != 1 + len(cases):
        return None
    # The index of a scalar condition chooses between arrays.
    if stack.invars[0].aval.shape != default.aval.shape:
        return None
    chain: list[jex_core.JaxprEqn] = []
    for condition, case in list(zip(stack.invars[1:], cases, strict=True))[::-1]:
        result = jex_core.Var(select.outvars[0].aval)
        chain.append(select.replace(invars=[condition, default, case], outvars=[result]))
        default = result
    chain[-1] = chain[-1].replace(outvars=select.outvars)
    return chain


def _is_false(atom: Any) -> bool:
    return isinstance(atom, jex_core.Literal) and not atom.val


CHOICE_SEARCHES: dict[str, Search] = {"select_n": _first_that_holds}
