"""Programs in which other values stand for those of dtypes that the target lacks.

Each variable of such a dtype becomes one or several of dtypes that the target has: operands and
results of programs, what loops carry, and what calls pass on. The walk over a program, and how
control flow and calls get new signatures, is here. A module for each kind of dtype says which those
are, and what becomes of other equations.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import jax_compat, registry
from lowering.arrays import narrow_numbers
from lowering.caches import PerJaxpr
from lowering.passes.everywhere import Everywhere
from lowering.passes.expansion import EXPANSION
from lowering.passes.jaxprs import Jaxpr, called_jaxprs, needed
from lowering.passes.rewriting import Rewriter
from lowering.passes.trace import trace_ours, trace_ours_once
from lowering.registry import Trait
from lowering.targets import Target

# Stands for an equation that is not changed, on what stands for its operands and results. Its
# parameters are the equation, what stands for the results, and why its decomposition refuses it. It
# may never be lowered, as it may be in a branch for another platform.
UNSPLIT = registry.new_primitive("unsplit")
UNSPLIT.multiple_results = True
UNSPLIT.def_effectful_abstract_eval(
    lambda *_, eqn, out_avals, reason: (list(out_avals), eqn.effects)
)

# Constants of fewer bytes than these become legal when the program is legalized.
_LARGE_BYTES = 4096


class Splitting(Everywhere):
    """Legalizes jaxprs, those that are called in them first."""

    def __init__(self, walk: "type[Walk]", target: Target):
        """
        Args:
          walk: legalizes one jaxpr.
          target: the target.
        """
        super().__init__()
        self.target = target
        self._walk = walk

    def _inner(self, jaxpr: Jaxpr) -> Iterator[Jaxpr]:
        for eqn in jaxpr.eqns:
            if registry.is_call(eqn) or _is_control_flow(eqn) or not self.has_illegal(eqn):
                yield from called_jaxprs(eqn)

    def _changed(self, jaxpr: Jaxpr) -> Any:
        variables = (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)
        if any(map(self._is_illegal, variables)) or any(map(self.is_changed, jaxpr.eqns)):
            return self._walk(self, jaxpr).jaxpr()
        return jaxpr

    def _is_illegal(self, atom: Any) -> bool:
        return self._walk.is_illegal(atom.aval, self.target)

    def has_illegal(self, eqn: jex_core.JaxprEqn) -> bool:
        """Whether an operand or a result of an equation is of a dtype that the target lacks."""
        return any(map(self._is_illegal, (*eqn.invars, *eqn.outvars)))

    def is_changed(self, eqn: jex_core.JaxprEqn) -> bool:
        """Whether an equation has such operands or results, or a jaxpr that it calls has."""
        return self.has_illegal(eqn) or any(self.jaxpr(x) is not x for x in called_jaxprs(eqn))

    def with_legal_jaxprs(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        """An equation whose jaxprs are legalized, but not its operands and results."""
        return self._with_changed_jaxprs(eqn)

    def traced(
        self, eqn: jex_core.JaxprEqn, fun: Callable[..., Any], avals: Sequence[Any]
    ) -> jex_core.ClosedJaxpr:
        """A function of JAX that says what an equation computes, as a legalized jaxpr.

        Args:
          eqn: the equation, whose parameters the function takes.
          fun: the function.
          avals: the abstract values of its operands.

        Raises:
          TypeError, ValueError, NotImplementedError: if the function refuses them.
        """
        structs = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals)
        has_jaxprs = any(True for _ in called_jaxprs(eqn))
        trace: Callable[..., Any] = trace_ours if has_jaxprs else trace_ours_once
        return self.jaxpr(trace(fun, structs, tuple(sorted(eqn.params.items())))[0])


class Legalization(PerJaxpr):
    """The pass that legalizes closed jaxprs for a target, and all jaxprs in them.

    A jaxpr without a dtype that the target lacks, in it and in all that it calls, is the same
    object as before.
    """

    def __init__(self, walk: "type[Walk]"):
        """`walk` legalizes one jaxpr."""
        super().__init__(lambda jaxpr, target: Splitting(walk, target).jaxpr(jaxpr))
        self.legal_avals = walk.legal_avals


class Walk:
    """Legalizes one jaxpr, equation by equation."""

    def __init__(self, splitting: Splitting, jaxpr: Jaxpr):
        self.splitting = splitting
        self.target = splitting.target
        self.old = jaxpr
        # What stands for a variable, by the variable, if that is not itself.
        self.values: dict[jex_core.Var, Sequence[Any]] = {}
        consts: list[Any] = []
        constvars: list[jex_core.Var] = []
        kept: dict[jex_core.Var, jex_core.Var] = {}
        for const, var in zip(getattr(jaxpr, "consts", ()), jaxpr.constvars, strict=True):
            dtype = self._kept_dtype(const, var.aval)
            if dtype is not None:
                kept[var] = jex_core.Var(var.aval.update(dtype=dtype))
                consts.append(const if const.dtype == dtype else np.asarray(const).astype(dtype))
                constvars.append(kept[var])
            else:
                consts += self.legal_arrays(const, var.aval, self.target)
                constvars += self.define([var])
        inputs = jax_compat.open_jaxpr(constvars, self.define(jaxpr.invars), [], [])
        self.new = Rewriter(jex_core.ClosedJaxpr(inputs, consts))
        for var, narrow in kept.items():
            widened = self.define([var])
            storage = widened[0].aval.dtype
            self.emit(jaxpr.eqns[0], narrow_numbers.WIDEN, [narrow], widened, storage=storage)

    @staticmethod
    def is_illegal(aval: Any, target: Target) -> bool:
        """Whether an abstract value is of a dtype that a target lacks."""
        raise NotImplementedError

    @staticmethod
    def legal_avals(aval: Any, target: Target) -> Sequence[Any]:
        """The abstract values of what stands for a value, of any dtype."""
        raise NotImplementedError

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        """The arrays that stand for an array of an abstract value, of any dtype."""
        raise NotImplementedError

    def kept_dtype(self, dtype: np.dtype) -> np.dtype | None:
        """The dtype in which the graph stores large constants of an illegal dtype.

        An op of the graph then widens them. None if they are stored in a legal dtype.
        """
        return None

    def _kept_dtype(self, const: Any, aval: Any) -> np.dtype | None:
        """As `kept_dtype`, for one constant; None if it is small or the jaxpr has no equations."""
        is_illegal = self.is_illegal(aval, self.target)
        is_large = is_illegal and const.nbytes > _LARGE_BYTES
        return self.kept_dtype(aval.dtype) if is_large and self.old.eqns else None

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds what takes the place of an equation that is no call and no control flow."""
        raise NotImplementedError

    def jaxpr(self) -> jex_core.ClosedJaxpr:
        """The legalized jaxpr, without equations of which nothing is used."""
        for eqn in self.old.eqns:
            if not self.splitting.is_changed(eqn):
                self.add(eqn)
            elif registry.is_call(eqn):
                legal = self.splitting.with_legal_jaxprs(eqn)
                called, operands = registry.called(legal, eqn.invars)
                params = {"jaxpr": called}
                self.add(eqn.replace(primitive=EXPANSION, invars=list(operands), params=params))
            elif _is_control_flow(eqn):
                legal = self.splitting.with_legal_jaxprs(eqn)
                self.add(legal.replace(params=self._with_counts(legal)))
            else:
                self.legalize(eqn)
        outvars = self.read(self.old.outvars)
        jaxpr = self.new.jaxpr()
        eqns = needed(jaxpr.eqns, lambda eqn: bool(eqn.effects), outvars)
        return jax_compat.with_equations(jaxpr, jaxpr.jaxpr.invars, outvars, eqns)

    def read(self, atoms: Sequence[Any]) -> list[Any]:
        """The atoms that stand for others."""
        return [value for atom in atoms for value in self.values_of(atom)]

    def values_of(self, atom: Any) -> Sequence[Any]:
        """The atoms that stand for one."""
        if not isinstance(atom, jex_core.Literal):
            return self.values.get(atom, (atom,))
        if not self.is_illegal(atom.aval, self.target):
            return (atom,)
        arrays = self.legal_arrays(atom.val, atom.aval, self.target)
        pairs = zip(arrays, self.legal_avals(atom.aval, self.target), strict=True)
        return [jex_core.Literal(value, aval) for value, aval in pairs]

    def define(self, variables: Sequence[jex_core.Var]) -> list[jex_core.Var]:
        """The variables that stand for others: new ones for those that are illegal."""
        defined: list[Any] = []
        for var in variables:
            if self.is_illegal(var.aval, self.target):
                avals = self.legal_avals(var.aval, self.target)
                self.values[var] = list(map(jex_core.Var, avals))
            defined += self.values.get(var, (var,))
        return defined

    def add(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation on what stands for its operands and results."""
        self.new.add(eqn.replace(invars=self.read(eqn.invars), outvars=self.define(eqn.outvars)))

    def emit(
        self,
        scope: jex_core.JaxprEqn,
        primitive: jex_core.Primitive,
        invars: Sequence[Any],
        outvars: Sequence[jex_core.Var],
        **params: Any,
    ) -> None:
        """Adds an equation on legal values that has the line and the name scope of another."""
        new: dict[str, Any] = {"primitive": primitive, "params": params, "effects": set()}
        self.new.add(scope.replace(invars=list(invars), outvars=list(outvars), **new))

    def add_unsplit(self, eqn: jex_core.JaxprEqn, reason: str = "") -> None:
        """Adds an equation as it is; `reason` is why it cannot be lowered, if that is known."""
        avals = [self.legal_avals(var.aval, self.target) for var in eqn.outvars]
        out_avals = tuple(aval for legal in avals for aval in legal)
        params = {"eqn": eqn, "out_avals": out_avals, "reason": reason}
        if eqn.primitive is UNSPLIT:  # More operands stand for those of the same equation.
            params = {**eqn.params, "out_avals": out_avals}
        self.add(eqn.replace(primitive=UNSPLIT, params=params))

    def decompose(self, eqn: jex_core.JaxprEqn, fun: Callable[..., Any]) -> None:
        """Adds what a function of JAX says that an equation computes, legalized.

        An equation that the function refuses is added as it is, with the reason.
        """
        try:
            jaxpr = self.splitting.traced(eqn, fun, [x.aval for x in eqn.invars])
        except (TypeError, ValueError, NotImplementedError) as error:
            self.add_unsplit(eqn, f"{type(error).__name__}: {error}")
        else:
            self.replace(eqn, self.new.inline(jaxpr, self.read(eqn.invars), eqn))

    def apply_to_parts(self, eqn: jex_core.JaxprEqn, params: dict[str, Any]) -> None:
        """Adds an equation on the first parts of values, and one on the second parts."""
        self.define(eqn.outvars)
        for i in range(2):
            invars = [self.values_of(x)[i if self.has_illegal_dtype(x) else 0] for x in eqn.invars]
            # Other results are those of the first equation.
            outvars = [
                self.values_of(x)[i] if self.has_illegal_dtype(x) else (x, jex_core.Var(x.aval))[i]
                for x in eqn.outvars
            ]
            self.new.add(eqn.replace(invars=invars, outvars=outvars, params=params))

    def has_illegal_dtype(self, atom: Any) -> bool:
        """Whether the dtype of an operand or a result is one that this walk replaces."""
        return self.is_illegal(atom.aval, self.target)

    def replace(self, eqn: jex_core.JaxprEqn, atoms: Sequence[Any]) -> None:
        """Lets atoms stand for the results of an equation, in their shapes."""
        rest = iter(atoms)
        for var in eqn.outvars:
            avals = self.legal_avals(var.aval, self.target)
            self.values[var] = [self._broadcast(next(rest), aval.shape, eqn) for aval in avals]

    def _broadcast(self, atom: Any, shape: Sequence[Any], eqn: jex_core.JaxprEqn) -> Any:
        if atom.aval.shape == shape:
            return atom
        result = jex_core.Var(jax.core.ShapedArray(shape, atom.aval.dtype))
        axes = tuple(range(len(shape) - len(atom.aval.shape), len(shape)))
        params = {"shape": shape, "broadcast_dimensions": axes, "sharding": None}
        self.emit(eqn, jax.lax.broadcast_in_dim_p, [atom], [result], **params)
        return result

    def _with_counts(self, eqn: jex_core.JaxprEqn) -> Mapping[str, Any]:
        """The parameters of control flow, with the new counts of constants and carried values."""

        def count(start, number):
            return len(self.read(eqn.invars[start : start + number]))

        params = eqn.params
        if "branches" in params:
            return params
        if "cond_nconsts" in params:
            of_cond, of_body = params["cond_nconsts"], params["body_nconsts"]
            counts = {"cond_nconsts": count(0, of_cond), "body_nconsts": count(of_cond, of_body)}
            return {**params, **counts}
        consts, carry = jax_compat.scan_counts(params)
        body, num_consts, num_carry = params["jaxpr"], count(0, consts), count(consts, carry)
        return jax_compat.with_scan_body(params, body, num_consts, num_carry)


def selects(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation moves elements alone."""
    return registry.has_trait(eqn.primitive.name, Trait.SELECTS)


def _is_control_flow(eqn: jex_core.JaxprEqn) -> bool:
    return registry.has_trait(eqn.primitive.name, Trait.CONTROL_FLOW)
