"""Words (uint32) are split into their upper and their lower 16 bits, as int32 from 0 to 65535.

It is for targets whose integers are exact to fewer bits (`tfjs.quirks.integers_of_24_bits`). A
primitive that moves elements is applied to the upper halves and to the lower ones. Others have
decompositions in JAX, which are split in turn, down to the arithmetic of halves (`arrays.halves`).
What has none is applied to the int32 with the same bits, which are exact as far as the integers
are.

Random bits stay one equation, as they do in `legalize.keys`.
"""

import dataclasses
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
            self.apply_to_parts(eqn, with_dtypes(eqn.params, _legal_dtype))
        else:
            results = tuple(_legal_dtype(x.aval.dtype) != x.aval.dtype for x in eqn.outvars)
            self.decompose(eqn, _OnBits(eqn.primitive, results))

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


@dataclasses.dataclass(frozen=True)
class _OnBits:
    """What a primitive does with words: the same with the int32 that have their bits.

    Attributes:
      primitive: the primitive.
      is_word: which of its results are words.
    """

    primitive: jex_core.Primitive
    is_word: tuple[bool, ...]

    def __call__(self, *operands: jax.Array, **params: Any) -> Any:
        params = with_dtypes({name: _on_bits(x) for name, x in params.items()}, _legal_dtype)
        found = self.primitive.bind(*map(_bits_of, operands), **params)
        if not self.primitive.multiple_results:
            return _words_of(found) if self.is_word[0] else found
        return [_words_of(x) if w else x for x, w in zip(found, self.is_word, strict=True)]


def _bits_of(x: jax.Array) -> jax.Array:
    return lax.bitcast_convert_type(x, HALF) if x.dtype == WORD else x


def _words_of(bits: jax.Array) -> jax.Array:
    return lax.bitcast_convert_type(bits, WORD)


def _on_bits(value: Any) -> Any:
    """A parameter; a computation on scalars is one on their bits."""
    if isinstance(value, jex_core.ClosedJaxpr):
        return _computation(value)
    if isinstance(value, jex_core.Jaxpr):
        return _computation(jex_core.ClosedJaxpr(value, ())).jaxpr
    return value


def _computation(computation: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """A single monoid is the same for bits, and has to be one, for reductions to recognize."""
    avals = [x.aval for x in computation.jaxpr.invars]

    def on_bits(*operands: jax.Array) -> Any:
        if computations.monoid(computation):
            (eqn,) = computation.eqns
            return eqn.primitive.bind(*operands, **eqn.params)
        pairs = zip(operands, avals, strict=True)
        words = [_words_of(x) if _is_word(aval) else x for x, aval in pairs]
        return list(map(_bits_of, jex_core.jaxpr_as_fun(computation)(*words)))

    structs = [jax.ShapeDtypeStruct(x.shape, _legal_dtype(x.dtype)) for x in avals]
    return trace_ours(on_bits, structs)[0]


def _is_word(aval: Any) -> bool:
    return getattr(aval, "dtype", None) == WORD


def _legal_dtype(dtype: Any) -> Any:
    return HALF if dtype == WORD else dtype
