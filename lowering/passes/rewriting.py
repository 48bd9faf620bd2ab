"""Makes jaxprs of others, with some equations replaced."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import jax_compat
from lowering.passes.jaxprs import Jaxpr, needed


class Rewriter:
    """Makes a jaxpr of the equations of another, some of them replaced."""

    def __init__(self, jaxpr: Jaxpr):
        self._old = jaxpr
        self.constvars = list(jaxpr.constvars)
        self._consts = list(getattr(jaxpr, "consts", ()))
        self._eqns: list[jex_core.JaxprEqn] = []
        self._atoms: dict[jex_core.Var, Any] = {}

    def read(self, atoms: Sequence[Any]) -> list[Any]:
        """The atoms that stand for those of the old jaxpr in the new one."""
        return [_read(atom, self._atoms) for atom in atoms]

    def add(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation, whose operands may be atoms of the old jaxpr or of the new one."""
        invars = self.read(eqn.invars)
        is_same = all(new is old for new, old in zip(invars, eqn.invars, strict=True))
        self._eqns.append(eqn if is_same else eqn.replace(invars=invars))

    def constant(self, value: np.ndarray) -> jex_core.Var:
        """A variable that holds an array, which becomes a constant of the new jaxpr."""
        var = jex_core.Var(jax.core.ShapedArray(value.shape, value.dtype))
        self.constvars.append(var)
        self._consts.append(value)
        return var

    def replace(self, outvars: Sequence[jex_core.Var], atoms: Sequence[Any]) -> None:
        """Substitutes atoms for the results of an equation that is not added."""
        self._atoms.update(zip(outvars, self.read(atoms), strict=True))

    def copy(
        self, jaxpr: Jaxpr, operands: Sequence[Any], scope: jex_core.JaxprEqn
    ) -> tuple[list[jex_core.JaxprEqn], list[Any]]:
        """The equations of another jaxpr on variables of their own, and the atoms of its results.

        Args:
          jaxpr: a jaxpr; its constants become constants of the new one.
          operands: the atoms that are its inputs.
          scope: the equation that the equations take the place of; they get its name scope, and
            its line where they have none.
        """
        atoms = dict(zip(jaxpr.invars, operands, strict=True))
        for var, const in zip(jaxpr.constvars, getattr(jaxpr, "consts", ()), strict=True):
            atoms[var] = jex_core.Var(var.aval)
            self.constvars.append(atoms[var])
            self._consts.append(const)
        eqns = []
        for eqn in jaxpr.eqns:
            invars = [_read(atom, atoms) for atom in eqn.invars]
            outvars = [jex_core.Var(var.aval) for var in eqn.outvars]
            atoms.update(zip(eqn.outvars, outvars, strict=True))
            copied = eqn.replace(invars=invars, outvars=outvars)
            eqns.append(jax_compat.within(copied, scope))
        return eqns, [_read(atom, atoms) for atom in jaxpr.outvars]

    def inline(self, jaxpr: Jaxpr, operands: Sequence[Any], scope: jex_core.JaxprEqn) -> list[Any]:
        """Adds the equations of another jaxpr; returns the atoms of its results. As `copy`."""
        eqns, results = self.copy(jaxpr, operands, scope)
        for eqn in eqns:
            self.add(eqn)
        return self.read(results)

    def jaxpr(self) -> jex_core.ClosedJaxpr:
        """The new jaxpr."""
        outvars = self.read(self._old.outvars)
        return jax_compat.closed(
            self.constvars, self._consts, self._old.invars, outvars, self._eqns
        )


def _read(atom: Any, atoms: dict[jex_core.Var, Any]) -> Any:
    return atom if isinstance(atom, jex_core.Literal) else atoms.get(atom, atom)


def replace_equations(
    jaxpr: Jaxpr,
    replacements: Mapping[str, Callable[[Rewriter, jex_core.JaxprEqn], jex_core.JaxprEqn | None]],
) -> Jaxpr:
    """Replaces equations one by one.

    Args:
      jaxpr: a jaxpr.
      replacements: for a primitive, a function that returns what takes the place of an equation,
        with the same results, or None if the equation stays. It may add equations in front.
    """
    if not any(eqn.primitive.name in replacements for eqn in jaxpr.eqns):
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        replace = replacements.get(eqn.primitive.name)
        new.add((replace and replace(new, eqn)) or eqn)
    return new.jaxpr()


def as_reshape(eqn: jex_core.JaxprEqn, x: Any, outvar: jex_core.Var) -> jex_core.JaxprEqn:
    """The equation that reshapes `x` to `outvar`, with the line and the scopes of another."""
    params = {"new_sizes": outvar.aval.shape, "dimensions": None, "sharding": None}
    return eqn.replace(primitive=lax.reshape_p, invars=[x], outvars=[outvar], params=params)


def as_broadcast(
    eqn: jex_core.JaxprEqn, x: Any, outvar: jex_core.Var, axes: Sequence[int]
) -> jex_core.JaxprEqn:
    """The equation that broadcasts `x` to `outvar`, with the line and the scopes of another.

    `axes` says which axis of the result each axis of `x` becomes.
    """
    shape = outvar.aval.shape
    params = {"shape": shape, "broadcast_dimensions": tuple(axes), "sharding": None}
    primitive = lax.broadcast_in_dim_p
    return eqn.replace(primitive=primitive, invars=[x], outvars=[outvar], params=params)


def without_unused(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """A jaxpr without dead equations."""
    eqns = needed(jaxpr.eqns, lambda eqn: bool(eqn.effects), jaxpr.jaxpr.outvars)
    if len(eqns) == len(jaxpr.eqns):
        return jaxpr
    return jaxpr.replace(jaxpr=jaxpr.jaxpr.replace(eqns=eqns))
