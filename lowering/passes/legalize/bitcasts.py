"""Words (uint32) become the int32 with the same bits.

It is for targets that have int32 alone. Sums, products and bitwise operations are the same for
both. Where they differ (orders, quotients, conversions), the primitive has a decomposition for
words (`registry.legalization`), which is legalized in turn.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import registry
from lowering.arrays import computations
from lowering.arrays.words import BITS, WORD, bits_of, of_bits
from lowering.avals import with_dtypes
from lowering.caches import PerJaxpr
from lowering.passes.jaxprs import Jaxpr, with_computations
from lowering.passes.legalize.keys import RANDOM, RANDOM_OF_PARTS
from lowering.passes.legalize.splitting import Splitting, Walk, selects
from lowering.passes.trace import trace_ours
from lowering.targets import Target

_CONVERSIONS = (lax.convert_element_type_p, lax.bitcast_convert_type_p)


@PerJaxpr
def bitcast_words(jaxpr: Jaxpr, target: Target) -> Any:
    """The closed jaxpr with int32 in place of words.

    A jaxpr without words, in it and in all that it calls, is the same object as before.
    """
    return Splitting(_Bitcast, target).jaxpr(jaxpr)


def avals_of_bits(aval: Any, target: Target) -> Sequence[Any]:
    """The abstract value of the bits of words; that of others as it is."""
    return (aval.update(dtype=BITS, weak_type=False) if is_word(aval) else aval,)


class WordWalk(Walk):
    """A jaxpr whose words become something else.

    Attributes:
      count: how many values take the place of words.
    """

    count: int

    @staticmethod
    def is_illegal(aval: Any, target: Target) -> bool:
        return is_word(aval)

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        rule = registry.rule_of(eqn, self.target, WORD)
        if not self.splitting.has_illegal(eqn):
            self.add(self.splitting.with_legal_jaxprs(eqn))
        elif eqn.primitive is RANDOM:
            words = tuple(is_word(x.aval) for x in eqn.invars)
            params = {**eqn.params, "words": words, "count": self.count}
            self.add(eqn.replace(primitive=RANDOM_OF_PARTS, params=params))
        elif _converts_bits(eqn):
            self.convert(eqn)
        elif rule is None or (rule.in_storage and not selects(eqn)):
            self.add_unsplit(eqn)
        elif rule.is_decomposition:
            self.decompose(eqn, rule.fun)
        else:
            self.apply(eqn)

    def convert(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds a conversion of words to int32, or the other way, or of words to words."""
        raise NotImplementedError

    def apply(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation that does the same with the int32 that have the bits of words."""
        raise NotImplementedError


class _Bitcast(WordWalk):
    """A jaxpr whose words are being bitcast."""

    count = 1
    legal_avals = staticmethod(avals_of_bits)

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        return (np.asarray(x).astype(WORD).view(BITS) if is_word(aval) else x,)

    def convert(self, eqn: jex_core.JaxprEqn) -> None:
        self.replace(eqn, self.read(eqn.invars))

    def apply(self, eqn: jex_core.JaxprEqn) -> None:
        self.add(eqn.replace(params=_on_bits(eqn.params)))


def on_bits(primitive: jex_core.Primitive, *operands: jax.Array, **params: Any) -> jax.Array:
    """The result of a primitive on words, which is one of words if the first operand is."""
    return OnBits(primitive, (operands[0].dtype == WORD,))(*operands, **params)


@dataclasses.dataclass(frozen=True)
class OnBits:
    """What a primitive does with words: the same with the int32 that have their bits.

    Attributes:
      primitive: the primitive.
      is_word: which of its results are words.
    """

    primitive: jex_core.Primitive
    is_word: tuple[bool, ...]

    def __call__(self, *operands: jax.Array, **params: Any) -> Any:
        found = self.primitive.bind(*map(_bits_of, operands), **_on_bits(params))
        if not self.primitive.multiple_results:
            return of_bits(found) if self.is_word[0] else found
        return [of_bits(x) if w else x for x, w in zip(found, self.is_word, strict=True)]


def _converts_bits(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation converts words to int32, or the other way, or not at all."""
    dtypes = {x.aval.dtype for x in (*eqn.invars, *eqn.outvars)}
    return eqn.primitive in _CONVERSIONS and dtypes <= {WORD, BITS}


def is_word(aval: Any) -> bool:
    """Whether values of an abstract value are words."""
    return getattr(aval, "dtype", None) == WORD


def dtype_of_bits(dtype: Any) -> Any:
    """The dtype of the bits of words; any other dtype itself."""
    return BITS if dtype == WORD else dtype


def _bits_of(x: jax.Array) -> jax.Array:
    return bits_of(x) if x.dtype == WORD else x


def _on_bits(params: dict[str, Any]) -> dict[str, Any]:
    return with_dtypes(with_computations(params, _computation), dtype_of_bits)


def _computation(computation: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """A computation on the bits of scalars.

    A single monoid is the same for bits, and has to be one, for reductions to recognize.
    """
    avals = [x.aval for x in computation.jaxpr.invars]

    def on_bits(*operands: jax.Array) -> Any:
        if computations.monoid(computation):
            (eqn,) = computation.eqns
            return eqn.primitive.bind(*operands, **eqn.params)
        pairs = zip(operands, avals, strict=True)
        words = [of_bits(x) if is_word(aval) else x for x, aval in pairs]
        return list(map(_bits_of, jex_core.jaxpr_as_fun(computation)(*words)))

    structs = [jax.ShapeDtypeStruct(x.shape, dtype_of_bits(x.dtype)) for x in avals]
    return trace_ours(on_bits, structs)[0]
