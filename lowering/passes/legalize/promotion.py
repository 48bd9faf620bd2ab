"""Floats of 16 bits are promoted to float32, for targets that do not compute in them.

Results are not rounded: consumers have the precision of float32 between ops, as XLA permits itself
(`xla_allow_excess_precision`). A program in 16 bits thus looks like one in 32 bits to the passes
that come after this one. What depends on the bits of a float, or has jaxprs of its own, keeps its
dtypes, with conversions around it.
"""

from typing import Any

import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import avals, jax_compat
from lowering.passes.jaxprs import Jaxpr, called_jaxprs
from lowering.registry import Trait, facts
from lowering.targets import CONSUMER, Target

_FLOAT32 = np.dtype(np.float32)

_PROMOTED = Trait.ELEMENTWISE | Trait.SELECTS | Trait.LINEAR | Trait.CONTRACTION | Trait.PROMOTED


def has_halves(jaxpr: Jaxpr) -> bool:
    """Whether an equation of a jaxpr has operands or results of 16-bit floats."""
    atoms = (atom for eqn in jaxpr.eqns for atom in (*eqn.invars, *eqn.outvars))
    return any(_dtype(atom) in avals.HALF_FLOATS for atom in atoms)


def promote_halves(jaxpr: Jaxpr, target: Target = CONSUMER) -> Jaxpr:
    """The jaxpr with float32 for floats of 16 bits that a target emulates.

    Arguments and results keep their dtypes.
    """
    promotion = _Promotion(jaxpr, target)
    return promotion.run() if any(map(promotion.is_promoted, jaxpr.eqns)) else jaxpr


class _Promotion:
    """Equations in float32; variables of 16 bits are defined where an equation asks for them."""

    def __init__(self, jaxpr: Jaxpr, target: Target):
        self._jaxpr = jaxpr
        self._dtypes = frozenset(filter(target.emulates, avals.HALF_FLOATS))
        self._eqns: list[jex_core.JaxprEqn] = []
        # By a variable of 16 bits the one of float32, and which of the former have values, too.
        self._wide: dict[jex_core.Var, Any] = {}
        self._defined: set[jex_core.Var] = {*jaxpr.invars, *jaxpr.constvars}
        # What stands for variables of other dtypes.
        self._same: dict[jex_core.Var, Any] = {}

    def run(self) -> jex_core.ClosedJaxpr:
        for eqn in self._jaxpr.eqns:
            if not self._has_halves(eqn):
                self._add(eqn, [self._same_as(atom) for atom in eqn.invars])
            elif self.is_promoted(eqn):
                self._promote(eqn)
            else:
                self._add(eqn, [self._narrow(atom, eqn) for atom in eqn.invars])
        old = self._jaxpr
        made_by = {id(var): eqn for eqn in old.eqns for var in eqn.outvars}
        # Others than those are not converted, so that it does not matter where.
        outvars = [self._narrow(x, made_by.get(id(x), old.eqns[-1])) for x in old.outvars]
        consts = getattr(old, "consts", ())
        return jax_compat.closed(old.constvars, consts, old.invars, outvars, self._eqns)

    def _promote(self, eqn: jex_core.JaxprEqn) -> None:
        invars = [self._widened(atom, eqn) for atom in eqn.invars]
        if self._converts_halves(eqn):
            # All are float32 here.
            (atom,), (var,) = invars, eqn.outvars
            (self._wide if self._is_half(var) else self._same)[var] = atom
            return
        outvars = []
        for var in eqn.outvars:
            if self._is_half(var):
                self._wide[var] = jex_core.Var(var.aval.update(dtype=_FLOAT32))
            outvars.append(self._wide.get(var, var))
        params = avals.with_dtypes(eqn.params, self._promoted)
        self._eqns.append(eqn.replace(invars=invars, outvars=outvars, params=params))

    def _add(self, eqn: jex_core.JaxprEqn, invars: list[Any]) -> None:
        self._eqns.append(eqn.replace(invars=invars))
        self._defined.update(eqn.outvars)

    def _same_as(self, atom: Any) -> Any:
        return atom if isinstance(atom, jex_core.Literal) else self._same.get(atom, atom)

    def _widened(self, atom: Any, eqn: jex_core.JaxprEqn) -> Any:
        """The atom of float32 that stands for one of 16 bits."""
        if not self._is_half(atom):
            return self._same_as(atom)
        if isinstance(atom, jex_core.Literal):
            value = np.asarray(atom.val).astype(_FLOAT32)
            return jex_core.Literal(value, atom.aval.update(dtype=_FLOAT32))
        if atom not in self._wide:
            self._wide[atom] = jex_core.Var(atom.aval.update(dtype=_FLOAT32))
            self._convert(atom, self._wide[atom], eqn)
        return self._wide[atom]

    def _narrow(self, atom: Any, eqn: jex_core.JaxprEqn) -> Any:
        """An atom of 16 bits for equations that have these dtypes, and for results."""
        if isinstance(atom, jex_core.Literal) or not self._is_half(atom):
            return self._same_as(atom)
        if atom not in self._defined:
            self._convert(self._wide[atom], atom, eqn)
            self._defined.add(atom)
        return atom

    def _convert(self, source: Any, target: jex_core.Var, eqn: jex_core.JaxprEqn) -> None:
        params = {"new_dtype": target.aval.dtype, "weak_type": False, "sharding": None}
        self._eqns.append(
            eqn.replace(
                primitive=lax.convert_element_type_p,
                invars=[source],
                outvars=[target],
                params=params,
                effects=set(),
            )
        )

    def is_promoted(self, eqn: jex_core.JaxprEqn) -> bool:
        """Whether an equation has floats of 16 bits, and does the same with others."""
        if not self._has_halves(eqn) or any(True for _ in called_jaxprs(eqn)):
            return False
        traits = facts(eqn.primitive.name).traits
        if not traits & _PROMOTED or Trait.OF_BITS in traits:
            return False
        # What is elementwise and takes integers beside floats rounds them to the dtype of these.
        is_mixed = len({_dtype(atom) for atom in eqn.invars}) > 1
        return not is_mixed or Trait.ELEMENTWISE not in traits or Trait.SELECTS in traits

    def _converts_halves(self, eqn: jex_core.JaxprEqn) -> bool:
        """Whether an equation converts between dtypes that become float32."""
        if eqn.primitive is not lax.convert_element_type_p:
            return False
        atoms = (*eqn.invars, *eqn.outvars)
        return all(self._is_half(x) or x.aval.dtype == _FLOAT32 for x in atoms)

    def _has_halves(self, eqn: jex_core.JaxprEqn) -> bool:
        return any(map(self._is_half, (*eqn.invars, *eqn.outvars)))

    def _is_half(self, atom: Any) -> bool:
        return _dtype(atom) in self._dtypes

    def _promoted(self, dtype: np.dtype) -> np.dtype:
        return _FLOAT32 if dtype in self._dtypes else dtype


def _dtype(atom: Any) -> Any:
    return getattr(atom.aval, "dtype", None)
