"""Narrow numbers are promoted to a storage dtype, in which the target computes.

They are numbers of eight bits or fewer (float8, float4, int4, int2) and, for targets without them,
integers of 8 and 16 bits. The storage dtype represents every number exactly. Results of an equation
are made to fit the narrow dtype (rounded or wrapped around), unless they cannot leave its range.
XLA does the same with eight bits or fewer on a CPU. Where JAX does something else, the primitive
has a decomposition for narrow dtypes, of which each step is made to fit, or says what it does with
promoted numbers (`registry.on_promoted`).
"""

from collections.abc import Callable
from typing import Any

import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import avals, narrow_formats, registry
from lowering.arrays import computations, narrow_numbers
from lowering.narrow_formats import HAS_CAST, INTEGER, NARROW, SHORT, SIGNED
from lowering.passes.jaxprs import with_computations
from lowering.passes.legalize.floats import promote_floats
from lowering.passes.legalize.promotion import Promotion
from lowering.passes.legalize.splitting import Legalization, selects
from lowering.passes.trace import trace_ours, trace_ours_once
from lowering.registry import Trait
from lowering.targets import Target

# Their results are in storage dtypes already.
_FITTING = (narrow_numbers.FIT, narrow_numbers.FROM_BITS)


class Narrow(Promotion):
    """A jaxpr whose narrow numbers are being promoted."""

    @staticmethod
    def promoted(dtype: Any, target: Target) -> Any:
        is_narrow = dtype in _NARROW or (dtype in _SHORT and target.emulates(dtype))
        return np.dtype(target.storage[dtype.name]) if is_narrow else dtype

    def kept_dtype(self, dtype: np.dtype) -> np.dtype | None:
        """TensorFlow casts some floats of eight bits, and other runtimes cast short integers."""
        if not self.target.is_consumer:
            return dtype if dtype in HAS_CAST else None
        if dtype in INTEGER:
            return np.dtype(np.int8 if dtype in SIGNED else np.uint8)
        return dtype if dtype in SHORT else None

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        facts = registry.facts(eqn.primitive.name)
        atoms = filter(self.has_illegal_dtype, (*eqn.invars, *eqn.outvars))
        # Where narrow and short dtypes meet, the rule for the narrow one applies.
        dtype = min((x.aval.dtype for x in atoms), key=lambda d: d in SHORT, default=None)
        if dtype is None:
            self.add(self.splitting.with_legal_jaxprs(eqn))
            return
        if eqn.primitive is narrow_numbers.AS_STORED:
            self._convert(eqn, fits=True)
            return
        rule = registry.rule_of(eqn, self.target, dtype)
        is_named = rule is not None and dtype in (rule.dtypes or ())
        # Rules for short integers are for targets that compute with them.
        is_taken = is_named and dtype not in SHORT
        if (fun := facts.on_promoted.get(dtype)) is not None:
            self._apply_to_promoted(eqn, fun)
        elif eqn.primitive in _FITTING:
            storage = self.legal_dtype(eqn.params["storage"])
            self.add(eqn.replace(params={**eqn.params, "storage": storage}))
        elif rule is not None and rule.is_decomposition and (is_taken or dtype in SHORT):
            self.decompose(eqn, rule.fun)
        elif rule is None or is_taken or (rule.in_storage and not selects(eqn)):
            self.add_unsplit(eqn)
        else:
            self._promote(eqn)

    def _apply_to_promoted(self, eqn: jex_core.JaxprEqn, fun: Callable[..., Any]) -> None:
        """Adds what a function in JAX makes of operands in storage dtypes; see `on_promoted`."""
        params = {
            "primitive": eqn.primitive,
            "dtypes": tuple(x.aval.dtype for x in eqn.invars),
            "storages": tuple(self.legal_dtype(x.aval.dtype) for x in eqn.outvars),
            **eqn.params,
        }
        known = registry.facts(eqn.primitive.name).on_promoted
        operands = self.read(eqn.invars)
        structs = tuple(
            avals.struct(stored.aval if known.get(x.aval.dtype) is fun else x.aval)
            for x, stored in zip(eqn.invars, operands, strict=True)
        )
        jaxpr, _ = trace_ours_once(fun, structs, tuple(sorted(params.items())))
        # Functions of numbers of eight bits may compute in 16.
        jaxpr = promote_floats(jaxpr, self.target)
        self.replace(eqn, self.new.inline(self.splitting.jaxpr(jaxpr), operands, eqn))

    def _promote(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds the equation in storage dtypes, and rounds or wraps its results to narrow dtypes."""
        if eqn.primitive is lax.convert_element_type_p and self.has_illegal_dtype(eqn.outvars[0]):
            self._convert(eqn)
            return
        invars, outvars = self.read(eqn.invars), self.define(eqn.outvars)
        params = with_computations(eqn.params, self._computation)
        params = avals.with_dtypes(params, self.legal_dtype)
        unfit = {
            new: jex_core.Var(new.aval)
            for var, new in zip(eqn.outvars, outvars, strict=True)
            if self.has_illegal_dtype(var) and not _stays_in_range(eqn, var.aval.dtype)
        }
        results = [unfit.get(var, var) for var in outvars]
        self.new.add(eqn.replace(invars=invars, outvars=results, params=params))
        for var, new in zip(eqn.outvars, outvars, strict=True):
            if new in unfit:
                params = {"dtype": var.aval.dtype, "storage": new.aval.dtype}
                self.emit(eqn, narrow_numbers.FIT, [unfit[new]], [new], **params)

    def _convert(self, eqn: jex_core.JaxprEqn, fits: bool = False) -> None:
        """A conversion to a narrow dtype rounds or wraps numbers, unless all of them fit."""
        (source,), (operand,) = eqn.invars, self.read(eqn.invars)
        (result,) = self.define(eqn.outvars)
        dtype, storage = eqn.outvars[0].aval.dtype, result.aval.dtype
        if not fits and not narrow_formats.has_all_of(dtype, source.aval.dtype):
            params = {"dtype": dtype, "storage": storage}
            self.emit(eqn, narrow_numbers.FIT, [operand], [result], **params)
        elif operand.aval.dtype == storage:
            self.replace(eqn, [operand])
        else:
            params = {"new_dtype": storage, "weak_type": False, "sharding": None}
            self.emit(eqn, lax.convert_element_type_p, [operand], [result], **params)

    def _computation(self, computation: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
        """A computation on scalars, for scalars in storage dtypes.

        Each step is made to fit. Only a single monoid is not, for reductions to recognize.
        """
        if computations.monoid(computation) is None:
            return self.splitting.jaxpr(computation)
        (eqn,) = computation.eqns
        structs = [avals.struct(self.legal_avals(x.aval, self.target)[0]) for x in eqn.invars]
        return trace_ours(lambda *operands: eqn.primitive.bind(*operands, **eqn.params), structs)[0]


# Storage dtypes in place of narrow ones.
promote_narrow = Legalization(Narrow)


def _stays_in_range(eqn: jex_core.JaxprEqn, dtype: np.dtype) -> bool:
    """Whether results of an equation are in the range of a dtype because its operands are."""
    traits = registry.facts(eqn.primitive.name).traits
    is_integer = dtype in SHORT or dtype in INTEGER
    return Trait.SELECTS in traits or (is_integer and Trait.IN_RANGE in traits)


_NARROW, _SHORT = frozenset(NARROW), frozenset(SHORT)
