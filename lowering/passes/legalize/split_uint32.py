"""uint32 are split into their upper and their lower 16 bits, as int32 from 0 to 65535.

This is for targets whose integers are exact to fewer bits (`tfjs.quirks.integers_of_24_bits`). A
primitive that moves elements is applied to the upper and to the lower 16 bits. Other primitives
have decompositions in JAX, which are split in turn, down to the arithmetic of these parts
(`arrays.split_arithmetic`). A primitive without a decomposition is applied to the int32 with the
same bits, which is exact for integers of up to 24 bits.

Random bits stay one equation, as they do in `legalize.keys`.
"""

from collections.abc import Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np

from lowering.arrays import uint32_parts
from lowering.arrays.uint32 import INT32, UINT32
from lowering.arrays.uint32_parts import BASE
from lowering.avals import with_dtypes
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.legalize.bitcast_uint32 import (
    OnBits,
    Uint32Walk,
    dtype_of_bits,
    is_uint32,
)
from lowering.passes.legalize.splitting import Legalization, Splitting, selects
from lowering.targets import Target


class _Split(Uint32Walk):
    """A jaxpr that is being split."""

    count = 2

    def __init__(self, splitting: Splitting, jaxpr: Jaxpr):
        # The parts that an int32 has the bits of, by the int32.
        self._parts_of: dict[jex_core.Var, Sequence[Any]] = {}
        super().__init__(splitting, jaxpr)

    @staticmethod
    def legal_avals(aval: Any, target: Target) -> Sequence[Any]:
        is_illegal = is_uint32(aval)
        return (aval.update(dtype=INT32, weak_type=False),) * 2 if is_illegal else (aval,)

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        if not is_uint32(aval):
            return (x,)
        x = np.asarray(x, UINT32)
        return (x >> 16).astype(INT32), (x & (BASE - 1)).astype(INT32)

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        if eqn.primitive in (uint32_parts.JOIN, uint32_parts.SPLIT):
            self.replace(eqn, self.read(eqn.invars))
        else:
            super().legalize(eqn)

    def apply(self, eqn: jex_core.JaxprEqn) -> None:
        if selects(eqn):
            self.apply_to_parts(eqn, with_dtypes(eqn.params, dtype_of_bits))
        else:
            results = tuple(is_uint32(x.aval) for x in eqn.outvars)
            self.decompose(eqn, OnBits(eqn.primitive, results))

    def convert(self, eqn: jex_core.JaxprEqn) -> None:
        (operand,), (result,) = eqn.invars, eqn.outvars
        parts = self.read([operand])
        if operand.aval.dtype == UINT32 and result.aval.dtype == INT32:
            self._parts_of[result] = parts
            self.emit(eqn, uint32_parts.TO_INT32, parts, [result])
        elif operand.aval.dtype == INT32:
            self.values[result] = self._parts_of_bits(parts[0], eqn)
        else:
            self.replace(eqn, parts)

    def _parts_of_bits(self, bits: Any, eqn: jex_core.JaxprEqn) -> Sequence[Any]:
        """The parts of the bits of int32: the known ones, if uint32 with these bits were split."""
        if isinstance(bits, jex_core.Literal):
            aval = bits.aval.update(dtype=UINT32, weak_type=False)
            return self.values_of(jex_core.Literal(np.asarray(bits.val).astype(UINT32), aval))
        if bits not in self._parts_of:
            parts = list(map(jex_core.Var, [bits.aval.update(dtype=INT32, weak_type=False)] * 2))
            self.emit(eqn, uint32_parts.OF_INT32, [bits], parts)
            self._parts_of[bits] = parts
        return self._parts_of[bits]


# Two int32, the upper and the lower 16 bits, in place of each uint32.
split_uint32 = Legalization(_Split)
