"""Floats of 16 bits are promoted to float32, for targets that do not compute in them.

Results are not rounded after each op (excess precision, as XLA permits itself by
`xla_allow_excess_precision`). A program in 16 bits thus looks like one in 32 bits to the passes
that come after this one. Primitives that depend on the bits of a float round it themselves, in
decompositions (`lax.reduce_precision`).
"""

from typing import Any

import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import avals, registry
from lowering.arrays import narrow_numbers
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.keys import RANDOM, split_keys
from lowering.passes.legalize.promotion import Promotion
from lowering.passes.legalize.splitting import Legalization, selects
from lowering.passes.trace import trace_ours_once
from lowering.registry import Trait
from lowering.targets import Target

_FLOAT32 = np.dtype(np.float32)

# The traits of primitives that do the same with operands in float32.
_PROMOTED = Trait.ELEMENTWISE | Trait.SELECTS | Trait.LINEAR | Trait.CONTRACTION | Trait.PROMOTED


class Floats(Promotion):
    """A jaxpr whose floats of 16 bits are being promoted."""

    @staticmethod
    def promoted(dtype: Any, target: Target) -> Any:
        return _FLOAT32 if dtype in avals.HALF_FLOATS and target.emulates(dtype) else dtype

    def kept_dtype(self, dtype: np.dtype) -> np.dtype | None:
        return dtype

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        atoms = (*eqn.invars, *eqn.outvars)
        dtype = next((x.aval.dtype for x in atoms if self.has_illegal_dtype(x)), None)
        rule = registry.rule_of(eqn, self.target, dtype)
        if dtype is None or eqn.primitive is narrow_numbers.FIT:
            self.add(self.splitting.with_legal_jaxprs(eqn))
        elif eqn.primitive is lax.convert_element_type_p and self._is_same(*atoms):
            self.replace(eqn, self.read(eqn.invars))
        elif eqn.primitive is RANDOM:
            self._draw(eqn)
        elif rule is None or (rule.in_storage and not selects(eqn)):
            self.add_unsplit(eqn)
        elif rule.is_decomposition and _depends_on_dtype(eqn):
            self.decompose(eqn, rule.fun)
        else:
            legal = self.splitting.with_legal_jaxprs(eqn)
            self.add(legal.replace(params=avals.with_dtypes(legal.params, self.legal_dtype)))

    def _draw(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds what `RANDOM` computes, as the bits that it draws depend on the dtype."""
        structs = tuple(avals.struct(x.aval) for x in eqn.invars)
        jaxpr, _ = trace_ours_once(_drawn, structs, tuple(sorted(eqn.params.items())))
        legal = self.splitting.jaxpr(split_keys(jaxpr, self.target))
        self.replace(eqn, self.new.inline(legal, self.read(eqn.invars), eqn))

    def _is_same(self, *atoms: Any) -> bool:
        """Whether all atoms become float32."""
        return all(self.legal_dtype(atom.aval.dtype) == _FLOAT32 for atom in atoms)


# float32 in place of floats of 16 bits.
promote_floats = Legalization(Floats)


def _drawn(*operands: Any, name: str, **params: Any) -> Any:
    fun: Any = registry.facts(name).on_key_data
    return fun(*operands, **params)


def _depends_on_dtype(eqn: jex_core.JaxprEqn) -> bool:
    """Whether a primitive does something else with floats of 16 bits than with float32."""
    traits = registry.facts(eqn.primitive.name).traits
    if not traits & _PROMOTED or Trait.OF_BITS in traits or any(True for _ in called_jaxprs(eqn)):
        return True
    # Elementwise primitives of integers and floats round the integers to the dtype of the floats.
    is_mixed = len({x.aval.dtype for x in eqn.invars}) > 1
    return is_mixed and Trait.ELEMENTWISE in traits and not selects(eqn)
