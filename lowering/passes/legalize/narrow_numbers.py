"""Numbers of eight bits or fewer (float8, float4, int4, int2) are promoted to a storage dtype.

The storage dtype represents every number exactly, and the target computes with it. Results of an
equation are made to fit the narrow dtype (rounded or wrapped around), unless it selects elements
of its operands. XLA does the same on a CPU. Where JAX does something else, the primitive has a
decomposition for narrow dtypes, of which each step is made to fit, or says what it does with
promoted numbers (`registry.on_promoted`).
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import avals, registry
from lowering.arrays import computations, narrow_numbers
from lowering.narrow_formats import HAS_CAST, NARROW
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.legalize.splitting import Splitting, Walk
from lowering.passes.remembering import PerJaxpr
from lowering.passes.trace import trace_ours, trace_ours_once
from lowering.registry import Trait
from lowering.targets import Target

# Constants of more bytes than these keep their narrow dtype in the graph.
_LARGE_BYTES = 4096

# The numbers of a constant, which keeps its narrow dtype in the graph, in their storage dtype.
_WIDEN = registry.new_primitive("widen")


@_WIDEN.def_abstract_eval
def _(x: Any, *, storage: Any) -> Any:
    return jax.core.ShapedArray(x.shape, storage)


@PerJaxpr
def promote_narrow(jaxpr: Jaxpr, target: Target) -> Any:
    """The closed jaxpr with storage dtypes in place of those of eight bits or fewer.

    A jaxpr without such numbers, in it and in all that it calls, is the same object as before.
    """
    return Splitting(_Promotion, target).jaxpr(jaxpr)


def avals_in_storage(aval: Any, target: Target) -> Sequence[Any]:
    """The abstract value of narrow numbers in their storage dtype; that of others as it is."""
    return (aval.update(dtype=_storage(aval.dtype, target)) if _is_narrow(aval) else aval,)


class _Promotion(Walk):
    """A jaxpr whose narrow numbers are being promoted."""

    def __init__(self, splitting: Splitting, jaxpr: Jaxpr):
        super().__init__(splitting, jaxpr)
        for var in filter(lambda var: _is_narrow(var.aval), self.new.constvars):
            wide = jex_core.Var(self.legal_avals(var.aval, self.target)[0])
            params = {"storage": wide.aval.dtype}
            self._add(jaxpr.eqns[0], _WIDEN, params, var, wide)
            self.values[var] = [wide]

    @staticmethod
    def is_illegal(aval: Any, target: Target) -> bool:
        return _is_narrow(aval)

    legal_avals = staticmethod(avals_in_storage)

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        return (np.asarray(x).astype(_storage(aval.dtype, target)) if _is_narrow(aval) else x,)

    def keeps(self, const: Any, aval: Any) -> bool:
        """Large numbers of a dtype that TensorFlow has, and casts, as consumers do not."""
        is_large = aval.dtype in HAS_CAST and const.nbytes > _LARGE_BYTES
        return is_large and bool(self.old.eqns) and not self.target.is_consumer

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        facts = registry.facts(eqn.primitive.name)
        found = (x.aval.dtype for x in (*eqn.invars, *eqn.outvars) if _is_narrow(x.aval))
        if (dtype := next(found, None)) is None:
            self.add(self.splitting.with_legal_jaxprs(eqn))
            return
        rule = registry.rule_of(eqn, self.target, dtype)
        is_named = rule is not None and dtype in (rule.dtypes or ())
        if (fun := facts.on_promoted.get(dtype)) is not None:
            params = {
                "primitive": eqn.primitive,
                "dtypes": tuple(x.aval.dtype for x in eqn.invars),
                "storages": tuple(self._legal_dtype(x.aval.dtype) for x in eqn.outvars),
                **eqn.params,
            }
            operands = self.read(eqn.invars)
            structs = tuple(avals.struct(x.aval) for x in operands)
            jaxpr, _ = trace_ours_once(fun, structs, tuple(sorted(params.items())))
            self.replace(eqn, self.new.inline(self.splitting.jaxpr(jaxpr), operands, eqn))
        elif rule is not None and is_named and rule.is_decomposition:
            jaxpr = self.splitting.traced(eqn, rule.fun, [x.aval for x in eqn.invars])
            self.replace(eqn, self.new.inline(jaxpr, self.read(eqn.invars), eqn))
        elif rule is None or is_named or (rule.held and Trait.SELECTS not in facts.traits):
            # Its rule takes numbers of these dtypes.
            self.add_unsplit(eqn)
        else:
            self._promote(eqn)

    def _promote(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds the equation in storage dtypes, and what makes its results fit.

        A conversion to a narrow dtype is nothing but that.
        """
        if eqn.primitive is lax.convert_element_type_p and _is_narrow(eqn.outvars[0].aval):
            (operand,), (result,) = self.read(eqn.invars), self.define(eqn.outvars)
            fitting = {"dtype": eqn.outvars[0].aval.dtype, "storage": result.aval.dtype}
            self._add(eqn, narrow_numbers.FIT, fitting, operand, result)
            return
        invars, outvars = self.read(eqn.invars), self.define(eqn.outvars)
        params = {name: self._param(x) for name, x in eqn.params.items()}
        params = avals.with_dtypes(params, self._legal_dtype)
        selects = registry.has_trait(eqn.primitive.name, Trait.SELECTS)
        unfit = {
            new: jex_core.Var(new.aval)
            for var, new in zip(eqn.outvars, outvars, strict=True)
            if _is_narrow(var.aval) and not selects
        }
        results = [unfit.get(var, var) for var in outvars]
        self.new.add(eqn.replace(invars=invars, outvars=results, params=params))
        for var, new in zip(eqn.outvars, outvars, strict=True):
            if new in unfit:
                params = {"dtype": var.aval.dtype, "storage": new.aval.dtype}
                self._add(eqn, narrow_numbers.FIT, params, unfit[new], new)

    def _add(
        self,
        scope: jex_core.JaxprEqn,
        primitive: jex_core.Primitive,
        params: dict[str, Any],
        operand: Any,
        result: jex_core.Var,
    ) -> None:
        """Adds an equation that has the line and the name scope of another."""
        new = {"primitive": primitive, "params": params, "effects": set()}
        self.new.add(scope.replace(invars=[operand], outvars=[result], **new))

    def _legal_dtype(self, dtype: Any) -> Any:
        return _storage(dtype, self.target) if dtype in NARROW else dtype

    def _param(self, value: Any) -> Any:
        if isinstance(value, jex_core.ClosedJaxpr):
            return self._computation(value)
        if isinstance(value, jex_core.Jaxpr):
            return self._computation(jex_core.ClosedJaxpr(value, ())).jaxpr
        return value

    def _computation(self, computation: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
        """A computation on scalars, for scalars in storage dtypes.

        Each step is made to fit. Only a single monoid is not, for reductions to recognize.
        """
        if computations.monoid(computation) is None:
            return self.splitting.jaxpr(computation)
        (eqn,) = computation.eqns
        structs = [avals.struct(self.legal_avals(x.aval, self.target)[0]) for x in eqn.invars]
        return trace_ours(lambda *operands: eqn.primitive.bind(*operands, **eqn.params), structs)[0]


def _is_narrow(aval: Any) -> bool:
    return getattr(aval, "dtype", None) in _NARROW


_NARROW = frozenset(NARROW)


def _storage(dtype: np.dtype, target: Target) -> np.dtype:
    return np.dtype(target.storage[dtype.name])
