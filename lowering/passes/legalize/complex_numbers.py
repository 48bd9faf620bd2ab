"""Complex numbers are split into real and imaginary parts, for targets that have no others.

Each complex variable becomes two of real numbers: operands and results of programs, what loops
carry, and what calls pass on. A primitive that moves elements, or is linear, is applied to the real
parts and to the imaginary ones. Others have decompositions or legalizations in JAX, which are split
in turn, down to `complex`, `real` and `imag`, of which nothing is left.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import jax_compat, registry
from lowering.avals import is_complex, real_dtype, with_dtypes
from lowering.passes.everywhere import Everywhere
from lowering.passes.expansion import EXPANSION
from lowering.passes.jaxprs import Jaxpr, called_jaxprs, needed
from lowering.passes.remembering import PerJaxpr
from lowering.passes.rewriting import Rewriter
from lowering.passes.trace import trace_ours, trace_ours_once
from lowering.registry import Trait
from lowering.targets import Target

# Stands for an equation that nothing says how to split, on the parts of its operands and results.
# Its parameters are the equation, and why its decomposition refuses it. It may never be lowered, as
# it may be in a branch for another platform.
UNSPLIT = registry.new_primitive("unsplit")
UNSPLIT.multiple_results = True
UNSPLIT.def_effectful_abstract_eval(
    lambda *_, eqn, reason: ([aval for var in eqn.outvars for aval in _avals_of(var)], eqn.effects)
)


@PerJaxpr
def split_complex(jaxpr: Jaxpr, target: Target) -> Any:
    """The closed jaxpr with two inputs or results, the parts, in place of each complex one.

    A jaxpr without complex numbers, in it and in all that it calls, is the same object as before.
    """
    return _Splitting(target).jaxpr(jaxpr)


def has_complex(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation has complex numbers as operands or results."""
    return any(map(_is_complex, (*eqn.invars, *eqn.outvars)))


class _Splitting(Everywhere):
    """Splits jaxprs, those that are called in them first."""

    def __init__(self, target: Target):
        super().__init__(lambda eqn: eqn)
        self._target = target

    def _inner(self, jaxpr: Jaxpr) -> Iterator[Jaxpr]:
        for eqn in jaxpr.eqns:
            if _is_call(eqn) or _is_control_flow(eqn) or not has_complex(eqn):
                yield from called_jaxprs(eqn)

    def _changed(self, jaxpr: Jaxpr) -> Any:
        variables = (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)
        if any(map(_is_complex, variables)) or any(map(self.is_split, jaxpr.eqns)):
            return _Split(self, jaxpr).jaxpr()
        return jaxpr

    def is_split(self, eqn: jex_core.JaxprEqn) -> bool:
        """Whether an equation has complex numbers, or a jaxpr that it calls has."""
        return has_complex(eqn) or any(self.jaxpr(x) is not x for x in called_jaxprs(eqn))

    def of_parts(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        """An equation whose jaxprs are split, but not its operands and results."""
        return self._with_changed_jaxprs(eqn)

    def decomposition(self, eqn: jex_core.JaxprEqn) -> Callable[..., Any] | None:
        """The function of JAX that says what an equation computes; None if there is none."""
        dtypes = [x.aval.dtype for x in (*eqn.invars, *eqn.outvars) if _is_complex(x)]
        rule = registry.rule_of(eqn, self._target, *dtypes[:1] or [np.dtype(np.complex64)])
        return rule.fun if rule is not None and rule.is_decomposition else None

    def decomposed(self, eqn: jex_core.JaxprEqn, fun: Callable[..., Any]) -> Any:
        """What an equation computes, as a jaxpr on parts.

        Raises:
          TypeError, ValueError, NotImplementedError: if `fun` refuses the equation.
        """
        structs = tuple(jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in eqn.invars)
        has_jaxprs = any(True for _ in called_jaxprs(eqn))
        trace: Callable[..., Any] = trace_ours if has_jaxprs else trace_ours_once
        jaxpr, _ = trace(fun, structs, tuple(sorted(eqn.params.items())))
        return self.jaxpr(jaxpr)


class _Split:
    """A jaxpr that is being split."""

    def __init__(self, splitting: _Splitting, jaxpr: Jaxpr):
        self._splitting = splitting
        self._old = jaxpr
        # The parts of complex variables, and what stands for others, where they do not themselves.
        self._parts: dict[jex_core.Var, Sequence[Any]] = {}
        consts = [part for x in getattr(jaxpr, "consts", ()) for part in _parts_of_array(x)]
        inputs = jex_core.Jaxpr(self._define(jaxpr.constvars), self._define(jaxpr.invars), [], [])
        self._new = Rewriter(jex_core.ClosedJaxpr(inputs, consts))

    def jaxpr(self) -> jex_core.ClosedJaxpr:
        """The jaxpr on parts, without equations of which nothing is used."""
        for eqn in self._old.eqns:
            if self._splitting.is_split(eqn):
                self._split(eqn)
            else:
                self._add(eqn)
        jaxpr, outvars = self._new.jaxpr(), self._read(self._old.outvars)
        eqns = needed(jaxpr.eqns, lambda eqn: bool(eqn.effects), outvars)
        return jax_compat.with_equations(jaxpr, jaxpr.jaxpr.invars, outvars, eqns)

    def _read(self, atoms: Sequence[Any]) -> list[Any]:
        """The atoms that stand for others: two for each complex number."""
        return [part for atom in atoms for part in self._parts_of(atom)]

    def _parts_of(self, atom: Any) -> Sequence[Any]:
        if not isinstance(atom, jex_core.Literal):
            return self._parts.get(atom, (atom,))
        if not _is_complex(atom):
            return (atom,)
        value, aval = np.asarray(atom.val, atom.aval.dtype), _real_aval(atom)
        return [jex_core.Literal(part, aval) for part in _parts_of_array(value)]

    def _define(self, variables: Sequence[jex_core.Var]) -> list[jex_core.Var]:
        """The variables that stand for others: two new ones for each complex number."""
        for var in filter(_is_complex, variables):
            self._parts[var] = [jex_core.Var(_real_aval(var)) for _ in range(2)]
        return self._read(variables)

    def _add(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation on parts."""
        invars = self._read(eqn.invars)
        self._new.add(eqn.replace(invars=invars, outvars=self._define(eqn.outvars)))

    def _split(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds what takes the place of an equation with complex numbers."""
        if eqn.primitive is lax.complex_p:
            self._replace(eqn, self._read(eqn.invars))
        elif eqn.primitive in (lax.real_p, lax.imag_p):
            self._replace(eqn, [self._read(eqn.invars)[eqn.primitive is lax.imag_p]])
        elif _is_call(eqn):
            called, operands = registry.called(self._splitting.of_parts(eqn), eqn.invars)
            params = {"jaxpr": called}
            self._add(eqn.replace(primitive=EXPANSION, invars=list(operands), params=params))
        elif _is_control_flow(eqn):
            changed = self._splitting.of_parts(eqn)
            self._add(changed.replace(params=self._with_counts(changed)))
        elif (fun := self._splitting.decomposition(eqn)) is not None:
            try:
                jaxpr = self._splitting.decomposed(eqn, fun)
            except (TypeError, ValueError, NotImplementedError) as error:
                self._refuse(eqn, f"{type(error).__name__}: {error}")
            else:
                self._replace(eqn, self._new.inline(jaxpr, self._read(eqn.invars), eqn))
        elif registry.facts(eqn.primitive.name).traits & (Trait.SELECTS | Trait.LINEAR):
            self._apply_to_parts(eqn)
        else:
            self._refuse(eqn)

    def _refuse(self, eqn: jex_core.JaxprEqn, reason: str = "") -> None:
        """Leaves an equation to be an error if it is lowered; `reason` is why, if it is known."""
        self._add(eqn.replace(primitive=UNSPLIT, params={"eqn": eqn, "reason": reason}))

    def _with_counts(self, eqn: jex_core.JaxprEqn) -> Mapping[str, Any]:
        """The parameters of control flow, which say of how many operands groups are."""

        def count(start, number):
            return len(self._read(eqn.invars[start : start + number]))

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

    def _replace(self, eqn: jex_core.JaxprEqn, atoms: Sequence[Any]) -> None:
        """Lets atoms stand for the parts of the results of an equation, in their shapes."""
        rest = iter(atoms)
        for var in eqn.outvars:
            count = 2 if _is_complex(var) else 1
            self._parts[var] = [self._broadcast(next(rest), var, eqn) for _ in range(count)]

    def _broadcast(self, atom: Any, var: jex_core.Var, eqn: jex_core.JaxprEqn) -> Any:
        shape = var.aval.shape
        if atom.aval.shape == shape:
            return atom
        result = jex_core.Var(jax.core.ShapedArray(shape, atom.aval.dtype))
        axes = tuple(range(len(shape) - len(atom.aval.shape), len(shape)))
        params = {"shape": shape, "broadcast_dimensions": axes, "sharding": None}
        broadcast = {"primitive": lax.broadcast_in_dim_p, "params": params}
        self._new.add(eqn.replace(invars=[atom], outvars=[result], **broadcast))
        return result

    def _apply_to_parts(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation on the real, and one on the imaginary parts."""
        self._define(eqn.outvars)
        params = with_dtypes(eqn.params, _real_dtype)
        for i in range(2):
            invars = [self._parts_of(x)[i if _is_complex(x) else 0] for x in eqn.invars]
            # Other results are those of the first equation.
            outvars = [self._parts.get(x, (x, jex_core.Var(x.aval)))[i] for x in eqn.outvars]
            self._new.add(eqn.replace(invars=invars, outvars=outvars, params=params))


def _is_call(eqn: jex_core.JaxprEqn) -> bool:
    return registry.facts(eqn.primitive.name).called is not None


def _is_control_flow(eqn: jex_core.JaxprEqn) -> bool:
    return registry.has_trait(eqn.primitive.name, Trait.CONTROL_FLOW)


def _is_complex(atom: Any) -> bool:
    return is_complex(getattr(atom.aval, "dtype", None))


def _avals_of(atom: Any) -> Sequence[Any]:
    return [_real_aval(atom)] * 2 if _is_complex(atom) else [atom.aval]


def _real_aval(atom: Any) -> Any:
    return jax.core.ShapedArray(atom.aval.shape, real_dtype(atom.aval.dtype))


def _parts_of_array(x: Any) -> Sequence[Any]:
    """The real and the imaginary part of an array; an array of other numbers, alone."""
    return (x.real.copy(), x.imag.copy()) if is_complex(getattr(x, "dtype", None)) else (x,)


def _real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of parts, if it is one of complex numbers; else itself."""
    return real_dtype(dtype) if is_complex(dtype) else dtype
