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
from lowering.avals import is_complex, real_dtype
from lowering.passes.everywhere import Everywhere
from lowering.passes.expansion import EXPANSION
from lowering.passes.jaxprs import Jaxpr, called_jaxprs, jaxprs_among, needed
from lowering.passes.remembering import PerJaxpr
from lowering.passes.rewriting import Rewriter
from lowering.passes.trace import trace_ours, trace_ours_once
from lowering.registry import Trait
from lowering.targets import Target

# Stands for an equation that nothing says how to split, which is its parameter: on the parts of its
# operands and results. It may never be lowered, as it may be in a branch for another platform.
UNSPLIT = registry.new_primitive("unsplit")
UNSPLIT.multiple_results = True


@PerJaxpr
def split_complex(jaxpr: Jaxpr, target: Target) -> Any:
    """The closed jaxpr with two inputs or results, the parts, in place of each complex one.

    A jaxpr without complex numbers, in it and in all that it calls, is the same object as before.
    """
    return _Splitting(target).jaxpr(jaxpr)


class _Splitting(Everywhere):
    """Splits jaxprs, those that are called in them first."""

    def __init__(self, target: Target):
        super().__init__(lambda eqn: eqn)
        self.target = target

    def _inner(self, jaxpr: Jaxpr) -> Iterator[Jaxpr]:
        for eqn in jaxpr.eqns:
            if _is_call(eqn):
                yield registry.called(eqn, eqn.invars)[0]
            elif eqn.primitive.name in _CONTROL_FLOW or not _has_complex(eqn):
                yield from called_jaxprs(eqn)

    def _changed(self, jaxpr: Jaxpr) -> Any:
        variables = (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)
        if any(map(_is_complex, variables)) or any(map(self.is_split, jaxpr.eqns)):
            return _Split(self, jaxpr).jaxpr()
        return jaxpr

    def is_split(self, eqn: jex_core.JaxprEqn) -> bool:
        """Whether an equation has complex numbers, or a jaxpr that it calls has."""
        called = [registry.called(eqn, eqn.invars)[0]] if _is_call(eqn) else called_jaxprs(eqn)
        return _has_complex(eqn) or any(self.jaxpr(inner) is not inner for inner in called)

    def decomposed(self, eqn: jex_core.JaxprEqn) -> Any:
        """What an equation computes, as a jaxpr on parts; None if nothing says that in JAX."""
        rule = self._rule(eqn)
        if rule is None or not rule.is_decomposition or registry.is_namesake(eqn.primitive):
            return None
        structs = tuple(jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in eqn.invars)
        has_jaxprs = any(True for _ in jaxprs_among(eqn.params.values()))
        trace: Callable[..., Any] = trace_ours if has_jaxprs else trace_ours_once
        try:
            jaxpr, _ = trace(rule.fun, structs, tuple(sorted(eqn.params.items())))
        except (TypeError, ValueError, NotImplementedError):
            return None  # Nor can it be lowered, which tells the user why.
        return self.jaxpr(jaxpr)

    def _rule(self, eqn: jex_core.JaxprEqn) -> registry.Rule | None:
        """The rule for complex numbers, or else that for the dtype of the first operand."""
        name, dtypes = eqn.primitive.name, [x.aval.dtype for x in filter(_is_complex, _atoms(eqn))]
        for dtype in dtypes or [np.dtype(np.complex64)]:
            rule = registry.lookup(name, self.target, dtype, named=True)
            if rule is not None:
                return rule
        dtype = getattr(eqn.invars[0].aval, "dtype", None) if eqn.invars else None
        return registry.lookup(name, self.target, dtype)


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
                self._new.add(eqn.replace(invars=self.read(eqn.invars)))
        jaxpr, outvars = self._new.jaxpr(), self.read(self._old.outvars)
        eqns = needed(jaxpr.eqns, lambda eqn: bool(eqn.effects), outvars)
        return jax_compat.with_equations(jaxpr, jaxpr.jaxpr.invars, outvars, eqns)

    def called(self, jaxpr: Jaxpr) -> Any:
        """A jaxpr that an equation calls, on parts."""
        return self._splitting.jaxpr(jaxpr)

    def read(self, atoms: Sequence[Any]) -> list[Any]:
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
        return self.read(variables)

    def _split(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds what takes the place of an equation with complex numbers."""
        primitive = eqn.primitive
        if primitive is lax.complex_p:
            self._replace(eqn, self.read(eqn.invars))
        elif primitive in (lax.real_p, lax.imag_p):
            self._replace(eqn, [self.read(eqn.invars)[primitive is lax.imag_p]])
        elif _is_call(eqn):
            called, operands = registry.called(eqn, eqn.invars)
            call = {"primitive": EXPANSION, "params": {"jaxpr": self.called(called)}}
            self._add(eqn.replace(invars=list(operands), **call))
        elif primitive.name in _CONTROL_FLOW:
            changed = _CONTROL_FLOW[primitive.name](self, eqn)
            self._add(eqn.replace(params={**eqn.params, **changed}))
        elif (jaxpr := self._splitting.decomposed(eqn)) is not None:
            self._replace(eqn, self._new.inline(jaxpr, self.read(eqn.invars), eqn))
        elif registry.facts(primitive.name).traits & (Trait.SELECTS | Trait.LINEAR):
            self._apply_to_parts(eqn)
        else:
            self._add(eqn.replace(primitive=UNSPLIT, params={"eqn": eqn}))

    def _add(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation on parts."""
        invars = self.read(eqn.invars)
        self._new.add(eqn.replace(invars=invars, outvars=self._define(eqn.outvars)))

    def _replace(self, eqn: jex_core.JaxprEqn, atoms: Sequence[Any]) -> None:
        """Lets atoms stand for the parts of the results of an equation."""
        rest = iter(atoms)
        for var in eqn.outvars:
            count = 2 if _is_complex(var) else 1
            self._parts[var] = [self._broadcast(next(rest), var, eqn) for _ in range(count)]

    def _broadcast(self, atom: Any, var: jex_core.Var, eqn: jex_core.JaxprEqn) -> Any:
        """An atom in the shape of a variable, which elementwise equations may not have needed."""
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
        params = {name: _real_param(value) for name, value in eqn.params.items()}
        for i in range(2):
            invars = [self._parts_of(atom)[i if _is_complex(atom) else 0] for atom in eqn.invars]
            outvars = [
                self._parts[var][i] if _is_complex(var) else var if i == 0 else _like(var)
                for var in eqn.outvars
            ]
            self._new.add(eqn.replace(invars=invars, outvars=outvars, params=params))


def _scan(split: _Split, eqn: jex_core.JaxprEqn) -> Mapping[str, Any]:
    num_consts, num_carry = jax_compat.scan_counts(eqn.params)
    consts, carry = eqn.invars[:num_consts], eqn.invars[num_consts : num_consts + num_carry]
    counts = len(split.read(consts)), len(split.read(carry))
    return jax_compat.with_scan_body(eqn.params, split.called(eqn.params["jaxpr"]), *counts)


def _while(split: _Split, eqn: jex_core.JaxprEqn) -> Mapping[str, Any]:
    start, end = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    return {
        "cond_jaxpr": split.called(eqn.params["cond_jaxpr"]),
        "cond_nconsts": len(split.read(eqn.invars[:start])),
        "body_jaxpr": split.called(eqn.params["body_jaxpr"]),
        "body_nconsts": len(split.read(eqn.invars[start : start + end])),
    }


def _cond(split: _Split, eqn: jex_core.JaxprEqn) -> Mapping[str, Any]:
    return {"branches": tuple(map(split.called, eqn.params["branches"]))}


# How the parameters change that say which operands are what.
_CONTROL_FLOW: Mapping[str, Callable[[_Split, jex_core.JaxprEqn], Mapping[str, Any]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}


def _is_call(eqn: jex_core.JaxprEqn) -> bool:
    return registry.facts(eqn.primitive.name).called is not None


def _atoms(eqn: jex_core.JaxprEqn) -> Sequence[Any]:
    return (*eqn.invars, *eqn.outvars)


def _has_complex(eqn: jex_core.JaxprEqn) -> bool:
    return any(map(_is_complex, _atoms(eqn)))


def _is_complex(atom: Any) -> bool:
    return is_complex(getattr(atom.aval, "dtype", None))


def _real_aval(atom: Any) -> Any:
    return jax.core.ShapedArray(atom.aval.shape, real_dtype(atom.aval.dtype))


def _like(var: jex_core.Var) -> jex_core.Var:
    return jex_core.Var(var.aval)


def _parts_of_array(x: Any) -> Sequence[Any]:
    """The real and the imaginary part of an array; an array of other numbers, alone."""
    return (x.real.copy(), x.imag.copy()) if is_complex(getattr(x, "dtype", None)) else (x,)


def _real_param(value: Any) -> Any:
    """A parameter; that of parts, if it is a dtype of complex numbers."""
    is_dtype = isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, np.generic)
    )
    return real_dtype(value) if is_dtype and is_complex(value) else value
