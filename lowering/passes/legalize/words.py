"""Words (uint32) are split into their upper and their lower 16 bits, as int32 from 0 to 65535.

It is for targets whose integers are exact to fewer bits than 32. A primitive that moves elements is
applied to the upper halves and to the lower ones. Others have decompositions in JAX, which are
split in turn, down to the arithmetic of halves (`arrays.halves`). What has none is applied to the
int32 with the same bits, which are exact as far as the integers are.

Random bits stay one equation, as they do in `legalize.keys`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import registry
from lowering.arrays import computations, halves
from lowering.arrays.halves import HALF, SIZE, WORD
from lowering.avals import with_dtypes
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.legalize.keys import RANDOM
from lowering.passes.legalize.splitting import Splitting, Walk
from lowering.passes.remembering import PerJaxpr
from lowering.passes.trace import trace_ours
from lowering.registry import Trait
from lowering.targets import Target

# `RANDOM` on halves: `words` says which of its operands are words, `dtype` that of its result.
RANDOM_OF_HALVES = registry.new_primitive("random_of_halves")
RANDOM_OF_HALVES.multiple_results = True

_CONVERSIONS = (lax.convert_element_type_p, lax.bitcast_convert_type_p)


@RANDOM_OF_HALVES.def_abstract_eval
def _(*operands: Any, words: Any, **params: Any) -> Any:
    rest = iter(operands)
    whole = []
    for is_word in words:
        aval = next(rest)
        if is_word:
            next(rest)
        whole.append(aval.update(dtype=WORD) if is_word else aval)
    aval, _ = RANDOM.abstract_eval(*whole, **params)
    return [aval.update(dtype=HALF)] * 2 if aval.dtype == WORD else [aval]


@PerJaxpr
def split_words(jaxpr: Jaxpr, target: Target) -> Any:
    """The closed jaxpr with two inputs or results, the halves, in place of each of words.

    A jaxpr without words, in it and in all that it calls, is the same object as before.
    """
    return Splitting(_Split, target).jaxpr(jaxpr)


def avals_of_halves(aval: Any, target: Target) -> Sequence[Any]:
    """The abstract values of the halves of words; that of others alone."""
    return (aval.update(dtype=HALF, weak_type=False),) * 2 if _is_word(aval) else (aval,)


class _Split(Walk):
    """A jaxpr that is being split."""

    def __init__(self, splitting: Splitting, jaxpr: Jaxpr):
        # The halves that the bits of words were made of.
        self._made_of: dict[jex_core.Var, Sequence[Any]] = {}
        super().__init__(splitting, jaxpr)

    @staticmethod
    def is_illegal(aval: Any, target: Target) -> bool:
        return _is_word(aval)

    legal_avals = staticmethod(avals_of_halves)

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        if not _is_word(aval):
            return (x,)
        words = np.asarray(x, WORD)
        return (words >> 16).astype(HALF), (words & (SIZE - 1)).astype(HALF)

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        rule = registry.rule_of(eqn, self.target, WORD)
        if eqn.primitive in (halves.JOIN, halves.APART):
            self.replace(eqn, self.read(eqn.invars))
        elif not self.splitting.has_illegal(eqn):
            self.add(self.splitting.with_legal_jaxprs(eqn))
        elif eqn.primitive is RANDOM:
            words = tuple(_is_word(x.aval) for x in eqn.invars)
            params = {**eqn.params, "words": words}
            self.add(eqn.replace(primitive=RANDOM_OF_HALVES, params=params))
        elif eqn.primitive in _CONVERSIONS and self._is_of_bits(eqn):
            self._convert(eqn)
        elif rule is None or (rule.held and not self._selects(eqn)):
            self.add_unsplit(eqn)
        elif rule.is_decomposition:
            self.decompose(eqn, rule.fun)
        elif self._selects(eqn):
            self._apply_to_halves(eqn)
        else:
            self._apply_to_bits(eqn)

    def _selects(self, eqn: jex_core.JaxprEqn) -> bool:
        return registry.has_trait(eqn.primitive.name, Trait.SELECTS)

    def _is_of_bits(self, eqn: jex_core.JaxprEqn) -> bool:
        """Whether an equation converts words to int32, or the other way, or not at all."""
        return {x.aval.dtype for x in (*eqn.invars, *eqn.outvars)} <= {WORD, HALF}

    def _convert(self, eqn: jex_core.JaxprEqn) -> None:
        (operand,), (result,) = eqn.invars, eqn.outvars
        parts = self.read([operand])
        if operand.aval.dtype == WORD and result.aval.dtype == HALF:
            self._made_of[result] = parts
            self._add(eqn, halves.BITS, parts, [result])
        elif operand.aval.dtype == HALF:
            self.values[result] = self._halves_of_bits(parts[0], eqn)
        else:
            self.replace(eqn, parts)

    def _halves_of_bits(self, bits: Any, eqn: jex_core.JaxprEqn) -> Sequence[Any]:
        """The halves of int32: those that they were made of, if they were."""
        if isinstance(bits, jex_core.Literal):
            aval = bits.aval.update(dtype=WORD, weak_type=False)
            return self.values_of(jex_core.Literal(np.asarray(bits.val).astype(WORD), aval))
        if bits not in self._made_of:
            parts = list(map(jex_core.Var, [bits.aval.update(dtype=HALF, weak_type=False)] * 2))
            self._add(eqn, halves.OF_BITS, [bits], parts)
            self._made_of[bits] = parts
        return self._made_of[bits]

    def _apply_to_halves(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation on the upper, and one on the lower halves."""
        self.define(eqn.outvars)
        params = with_dtypes(eqn.params, _legal_dtype)
        fill = params.get("fill_value")
        for i in range(2):
            if fill is not None:
                params["fill_value"] = self.legal_arrays(fill, eqn.outvars[0].aval, self.target)[i]
            invars = [self.values_of(x)[i if _is_word(x.aval) else 0] for x in eqn.invars]
            # Other results are those of the first equation.
            outvars = [
                self.values_of(x)[i] if _is_word(x.aval) else (x, jex_core.Var(x.aval))[i]
                for x in eqn.outvars
            ]
            self.new.add(eqn.replace(invars=invars, outvars=outvars, params=dict(params)))

    def _apply_to_bits(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation on the int32 with the bits of words."""
        invars = [self._bits_of(x, eqn) if _is_word(x.aval) else x for x in eqn.invars]
        outvars = [
            jex_core.Var(x.aval.update(dtype=HALF)) if _is_word(x.aval) else x for x in eqn.outvars
        ]
        params = {name: self._on_bits(x) for name, x in eqn.params.items()}
        params = with_dtypes(params, _legal_dtype)
        self.new.add(eqn.replace(invars=self.read(invars), outvars=outvars, params=params))
        for var, bits in zip(eqn.outvars, outvars, strict=True):
            if bits is not var:
                self.values[var] = self._halves_of_bits(bits, eqn)

    def _bits_of(self, atom: Any, eqn: jex_core.JaxprEqn) -> Any:
        if isinstance(atom, jex_core.Literal):
            return jex_core.Literal(
                np.asarray(atom.val).astype(HALF), atom.aval.update(dtype=HALF, weak_type=False)
            )
        bits = jex_core.Var(atom.aval.update(dtype=HALF, weak_type=False))
        self._made_of[bits] = self.values_of(atom)
        self._add(eqn, halves.BITS, self.values_of(atom), [bits])
        return bits

    def _on_bits(self, value: Any) -> Any:
        """A parameter; a computation on scalars is one on their bits."""
        if isinstance(value, jex_core.ClosedJaxpr):
            return self._computation(value)
        if isinstance(value, jex_core.Jaxpr):
            return self._computation(jex_core.ClosedJaxpr(value, ())).jaxpr
        return value

    def _computation(self, computation: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
        """A single monoid is the same for bits, and has to be one, for reductions to recognize."""
        avals = [x.aval for x in computation.jaxpr.invars]
        structs = [jax.ShapeDtypeStruct(x.shape, _legal_dtype(x.dtype)) for x in avals]

        def on_bits(*operands: jax.Array) -> Any:
            if computations.monoid(computation):
                (eqn,) = computation.eqns
                return eqn.primitive.bind(*operands, **eqn.params)
            words = [
                lax.bitcast_convert_type(x, WORD) if _is_word(aval) else x
                for x, aval in zip(operands, avals, strict=True)
            ]
            results = jex_core.jaxpr_as_fun(computation)(*words)
            return [lax.bitcast_convert_type(x, HALF) if x.dtype == WORD else x for x in results]

        return self.splitting.jaxpr(trace_ours(on_bits, structs)[0])

    def _add(
        self,
        scope: jex_core.JaxprEqn,
        primitive: jex_core.Primitive,
        invars: Sequence[Any],
        outvars: Sequence[jex_core.Var],
    ) -> None:
        """Adds an equation that has the line and the name scope of another."""
        new: dict[str, Any] = {"primitive": primitive, "params": {}, "effects": set()}
        self.new.add(scope.replace(invars=list(invars), outvars=list(outvars), **new))


def _is_word(aval: Any) -> bool:
    return getattr(aval, "dtype", None) == WORD


def _legal_dtype(dtype: Any) -> Any:
    return HALF if dtype == WORD else dtype
