"""Words (uint32) are split into their upper and their lower 16 bits, as int32 from 0 to 65535.

It is for targets whose integers are exact to fewer bits (`tfjs.quirks.integers_of_24_bits`). A
primitive that moves elements is applied to the upper halves and to the lower ones. Others have
decompositions in JAX, which are split in turn, down to the arithmetic of halves (`arrays.halves`).
What has none is applied to the int32 with the same bits, which is exact for integers of up to 24
bits.

Random bits stay one equation, as they do in `legalize.keys`.
"""

from collections.abc import Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np

from lowering.arrays import halves
from lowering.arrays.halves import HALF, SIZE
from lowering.arrays.words import WORD
from lowering.avals import with_dtypes
from lowering.caches import PerJaxpr
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.legalize.bitcasts import (
    OnBits,
    WordWalk,
    dtype_of_bits,
    is_word,
)
from lowering.passes.legalize.splitting import Splitting, selects
from lowering.targets import Target


@PerJaxpr
def split_words(jaxpr: Jaxpr, target: Target) -> Any:
    """The closed jaxpr with two inputs or results, the halves, in place of each of words.

    A jaxpr without words, in it and in all that it calls, is the same object as before.
    """
    return Splitting(_Split, target).jaxpr(jaxpr)


def avals_of_halves(aval: Any, target: Target) -> Sequence[Any]:
    """The abstract values of the halves of words; that of others alone."""
    return (aval.update(dtype=HALF, weak_type=False),) * 2 if is_word(aval) else (aval,)


class _Split(WordWalk):
    """A jaxpr that is being split."""

    count = 2

    def __init__(self, splitting: Splitting, jaxpr: Jaxpr):
        # The halves that the bits of words were made of.
        self._made_of: dict[jex_core.Var, Sequence[Any]] = {}
        super().__init__(splitting, jaxpr)

    legal_avals = staticmethod(avals_of_halves)

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        if not is_word(aval):
            return (x,)
        words = np.asarray(x, WORD)
        return (words >> 16).astype(HALF), (words & (SIZE - 1)).astype(HALF)

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        if eqn.primitive in (halves.JOIN, halves.APART):
            self.replace(eqn, self.read(eqn.invars))
        else:
            super().legalize(eqn)

    def apply(self, eqn: jex_core.JaxprEqn) -> None:
        if selects(eqn):
            self.apply_to_parts(eqn, with_dtypes(eqn.params, dtype_of_bits))
        else:
            results = tuple(is_word(x.aval) for x in eqn.outvars)
            self.decompose(eqn, OnBits(eqn.primitive, results))

    def convert(self, eqn: jex_core.JaxprEqn) -> None:
        (operand,), (result,) = eqn.invars, eqn.outvars
        parts = self.read([operand])
        if operand.aval.dtype == WORD and result.aval.dtype == HALF:
            self._made_of[result] = parts
            self.emit(eqn, halves.BITS, parts, [result])
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
            self.emit(eqn, halves.OF_BITS, [bits], parts)
            self._made_of[bits] = parts
        return self._made_of[bits]
