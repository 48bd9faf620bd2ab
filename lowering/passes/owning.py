"""Lets a program keep what the user's arrays contained when it was traced.

JAX puts NumPy arrays that a function closes over into the jaxpr as they are. A user may write to
them later, when one part of the program has been lowered and another has not.
"""

from typing import Any

import jax.extend.core as jex_core
import numpy as np

from lowering.passes.everywhere import Everywhere, are_same


def with_own_constants(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """A jaxpr whose arrays, and those of the jaxprs in it, nobody else can write to."""
    return _Owning().jaxpr(jaxpr)


class _Owning(Everywhere):
    def __init__(self):
        super().__init__(self._with_own_literals, self._with_own_constants)
        # By identity, with the arrays themselves, so that one array has one copy.
        self._copies: dict[int, tuple[Any, Any]] = {}

    def _with_own_constants(self, jaxpr: Any) -> Any:
        consts = getattr(jaxpr, "consts", ())
        own = list(map(self._own, consts))
        if not are_same(own, consts):
            jaxpr = jaxpr.replace(consts=own)
        if isinstance(jaxpr, jex_core.Jaxpr):
            outvars = list(map(self._atom, jaxpr.outvars))
            if not are_same(outvars, jaxpr.outvars):
                jaxpr = jaxpr.replace(outvars=outvars)
        return jaxpr

    def _with_own_literals(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        invars = list(map(self._atom, eqn.invars))
        return eqn if are_same(invars, eqn.invars) else eqn.replace(invars=invars)

    def _atom(self, atom: Any) -> Any:
        if not isinstance(atom, jex_core.Literal):
            return atom
        value = self._own(atom.val)
        return atom if value is atom.val else jex_core.Literal(value, atom.aval)

    def _own(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or _is_fixed(value):
            return value
        if id(value) not in self._copies:
            self._copies[id(value)] = value, value.copy()
        return self._copies[id(value)][1]


def _is_fixed(array: Any) -> bool:
    """Whether nobody can write to an array, nor to one whose memory it shares."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True
