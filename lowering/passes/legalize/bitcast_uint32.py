"""uint32 becomes the int32 with the same bits, for targets that lack uint32.

Sums, products and bitwise operations are the same for both. Where they differ (orders, quotients,
conversions), the primitive has a decomposition for uint32 (`registry.legalization`), which is
legalized in turn.
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
from lowering.arrays.uint32 import INT32, UINT32, bits_of, of_bits
from lowering.avals import with_dtypes
from lowering.passes.jaxprs import with_computations
from lowering.passes.legalize.keys import RANDOM, RANDOM_OF_PARTS
from lowering.passes.legalize.splitting import Legalization, Walk, selects
from lowering.passes.trace import trace_ours
from lowering.targets import Target

_CONVERSIONS = (lax.convert_element_type_p, lax.bitcast_convert_type_p)


class Uint32Walk(Walk):
    """A jaxpr in which values of other dtypes take the place of uint32.

    Attributes:
      count: how many values take the place of one.
    """

    count: int

    @staticmethod
    def is_illegal(aval: Any, target: Target) -> bool:
        return is_uint32(aval)

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        rule = registry.rule_of(eqn, self.target, UINT32)
        if not self.splitting.has_illegal(eqn):
            self.add(self.splitting.with_legal_jaxprs(eqn))
        elif eqn.primitive is RANDOM:
            split = tuple(is_uint32(x.aval) for x in eqn.invars)
            params = {**eqn.params, "split": split, "count": self.count}
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
        """Adds a conversion from uint32 to int32 or uint32, or from int32 to uint32."""
        raise NotImplementedError

    def apply(self, eqn: jex_core.JaxprEqn) -> None:
        """Adds an equation that does the same with the int32 that have the bits of uint32."""
        raise NotImplementedError


class _Bitcast(Uint32Walk):
    """A jaxpr whose uint32 are being bitcast."""

    count = 1

    @staticmethod
    def legal_avals(aval: Any, target: Target) -> Sequence[Any]:
        is_illegal = is_uint32(aval)
        return (aval.update(dtype=INT32, weak_type=False) if is_illegal else aval,)

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        return (np.asarray(x).astype(UINT32).view(INT32) if is_uint32(aval) else x,)

    def convert(self, eqn: jex_core.JaxprEqn) -> None:
        self.replace(eqn, self.read(eqn.invars))

    def apply(self, eqn: jex_core.JaxprEqn) -> None:
        self.add(eqn.replace(params=_on_bits(eqn.params)))


# int32 in place of uint32.
bitcast_uint32 = Legalization(_Bitcast)


def on_bits(primitive: jex_core.Primitive, *operands: jax.Array, **params: Any) -> jax.Array:
    """The result of a primitive on uint32: uint32 if the first operand is."""
    return OnBits(primitive, (operands[0].dtype == UINT32,))(*operands, **params)


@dataclasses.dataclass(frozen=True)
class OnBits:
    """A primitive on uint32, computed with the int32 that have the same bits.

    Attributes:
      primitive: the primitive.
      is_uint32: which of its results are uint32.
    """

    primitive: jex_core.Primitive
    is_uint32: tuple[bool, ...]

    def __call__(self, *operands: jax.Array, **params: Any) -> Any:
        found = self.primitive.bind(*map(_bits_of, operands), **_on_bits(params))
        if not self.primitive.multiple_results:
            return of_bits(found) if self.is_uint32[0] else found
        return [of_bits(x) if w else x for x, w in zip(found, self.is_uint32, strict=True)]


def _converts_bits(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation converts between uint32 and int32, or one of them to itself."""
    dtypes = {x.aval.dtype for x in (*eqn.invars, *eqn.outvars)}
    return eqn.primitive in _CONVERSIONS and dtypes <= {UINT32, INT32}


def is_uint32(aval: Any) -> bool:
    """Whether an abstract value is of uint32."""
    return getattr(aval, "dtype", None) == UINT32


def dtype_of_bits(dtype: Any) -> Any:
    """int32 for uint32; any other dtype itself."""
    return INT32 if dtype == UINT32 else dtype


def _bits_of(x: jax.Array) -> jax.Array:
    return bits_of(x) if x.dtype == UINT32 else x


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
        unsigned = [of_bits(x) if is_uint32(aval) else x for x, aval in pairs]
        return list(map(_bits_of, jex_core.jaxpr_as_fun(computation)(*unsigned)))

    structs = [jax.ShapeDtypeStruct(x.shape, dtype_of_bits(x.dtype)) for x in avals]
    return trace_ours(on_bits, structs)[0]
