"""Numbers of eight bits or fewer, as programs compute with them: in a wider storage dtype.

`fit` makes numbers fit their dtype, in place of a conversion to it. The rules of the primitives are
in `rules.narrow_numbers`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from lowering import registry
from lowering.narrow_formats import FLOAT, SIGNED, has_negative_nan

FIT, _TO_BITS, _FROM_BITS = map(registry.new_primitive, ("fit", "to_bits", "from_bits"))


@FIT.def_abstract_eval
@_FROM_BITS.def_abstract_eval
def _(x: Any, *, dtype: Any, storage: Any) -> Any:
    return jax.core.ShapedArray(x.shape, np.dtype(storage))


@_TO_BITS.def_abstract_eval
def _(x: Any, *, dtype: Any) -> Any:
    return jax.core.ShapedArray(x.shape, np.dtype(np.uint8))


def fit(x: jax.Array, dtype: np.dtype, storage: np.dtype) -> jax.Array:
    """Numbers as those of a dtype: floats are rounded, integers wrap around, and floats that become
    integers saturate.

    Args:
      x: numbers of the storage dtype, or floats.
      dtype: a dtype of eight bits or fewer.
      storage: the dtype in which the results are stored.
    """
    return FIT.bind(x, dtype=dtype, storage=storage)


def to_bits(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """The bits of numbers of a dtype, as uint8; there is one NaN of each sign."""
    return _TO_BITS.bind(x, dtype=dtype)


def from_bits(bits: jax.Array, dtype: np.dtype, storage: np.dtype) -> jax.Array:
    """The inverse of `to_bits`; `storage` is the dtype in which the results are stored."""
    return _FROM_BITS.bind(bits, dtype=dtype, storage=storage)


def on_bits(
    *operands: jax.Array,
    primitive: jex_core.Primitive,
    dtypes: Sequence[np.dtype],
    storages: Sequence[np.dtype],
    **params: Any,
) -> jax.Array:
    """What a primitive makes of the bits of its operands; only its low bits count."""
    bits = map(to_bits, operands, dtypes)
    return from_bits(primitive.bind(*bits, **params), dtypes[0], storages[0])


def on_bytes(
    *operands: jax.Array,
    primitive: jex_core.Primitive,
    dtypes: Sequence[np.dtype],
    storages: Sequence[np.dtype],
    **params: Any,
) -> jax.Array:
    """What a primitive makes of integers of fewer bits, as integers of eight bits."""
    byte = np.int8 if dtypes[0] in SIGNED else np.uint8
    bytes_ = [lax.convert_element_type(x, byte) for x in operands]
    return fit(primitive.bind(*bytes_, **params), dtypes[0], storages[0])


def reduced_from_infinity(
    x: jax.Array,
    *,
    primitive: jex_core.Primitive,
    dtypes: Sequence[np.dtype],
    storages: Sequence[np.dtype],
    **params: Any,
) -> jax.Array:
    """The result of a reduction that XLA starts from an infinity, on float8_e8m0fnu.

    In that format infinity becomes NaN, and so does every result; a position is 0 then.
    """
    result = primitive.bind(x, **params)
    nothing = np.nan if jnp.issubdtype(result.dtype, np.floating) else 0
    return jnp.full_like(result, nothing)


def clip(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Numbers clipped to the finite range of a dtype."""
    info = (ml_dtypes.finfo if dtype in FLOAT else ml_dtypes.iinfo)(dtype)
    low, high = (x.dtype.type(float(limit)) for limit in (info.min, info.max))
    return lax.min(lax.max(x, low), high)


def on_order(
    *operands: jax.Array,
    primitive: jex_core.Primitive,
    dtypes: Sequence[np.dtype],
    storages: Sequence[np.dtype],
    **params: Any,
) -> list[jax.Array]:
    """What a primitive makes of its operands that orders them.

    In a format without negative zero, NaN has the bits of a negative zero and is the least number.
    """
    least = [_with(x, x != x, -np.inf, dtype) for x, dtype in zip(operands, dtypes, strict=True)]
    results = primitive.bind(*least, **params)
    # Positions of elements come behind these.
    rest = results[len(operands) :]
    pairs = zip(results, dtypes, strict=False)
    return [*(_with(x, x == -np.inf, np.nan, dtype) for x, dtype in pairs), *rest]


def _with(x, where, value, dtype):
    if not has_negative_nan(dtype):
        return x
    return lax.select(where, jnp.full(x.shape, value, x.dtype), x)
