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

from lowering import jax_compat, registry
from lowering.narrow_formats import FLOAT, format_of, has_infinity, has_negative_nan, width

FIT, FROM_BITS = map(registry.new_primitive, ("fit", "from_bits"))
# A conversion of numbers that are known to be numbers of the dtype, so that nothing makes them fit.
AS_STORED = registry.new_primitive("as_stored")
AS_STORED.def_abstract_eval(lambda x, *, dtype: x.update(dtype=dtype))
# The computations of `scatter` and `reduce` are on scalars, and mapped over arrays.
jax_compat.map_elements(FIT)
jax_compat.map_elements(FROM_BITS)
# The numbers of a constant, which keeps its dtype in the graph, in their storage dtype.
WIDEN = registry.new_primitive("widen")
_MANTISSA, _BIAS = 23, 127  # Of float32.


@WIDEN.def_abstract_eval
def _(x: Any, *, storage: Any) -> Any:
    return jax.core.ShapedArray(x.shape, np.dtype(storage))


@FIT.def_abstract_eval
@FROM_BITS.def_abstract_eval
def _(x: Any, *, dtype: Any, storage: Any) -> Any:
    return jax.core.ShapedArray(x.shape, np.dtype(storage))


def fit(x: jax.Array, dtype: np.dtype, storage: np.dtype) -> jax.Array:
    """Numbers as those of a dtype: floats are rounded, integers wrap around, and floats that become
    integers saturate.

    Args:
      x: numbers of any dtype; of complex ones the real part.
      dtype: a dtype of eight bits or fewer.
      storage: the dtype in which the results are stored.
    """
    return FIT.bind(x, dtype=dtype, storage=storage)


def as_stored(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Numbers of a dtype of eight bits or fewer, which are stored in a wider one.

    Args:
      x: the numbers in the wider dtype; none of them is rounded or wraps around.
      dtype: the dtype.
    """
    return AS_STORED.bind(x, dtype=dtype)


def to_bits(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """The bits of numbers of a dtype, as uint8; there is one NaN of each sign."""
    if dtype not in FLOAT:
        return fit(x, np.dtype(f"uint{width(dtype)}"), np.dtype(np.uint8))
    form = format_of(dtype)
    bias = np.int32((_BIAS - form.bias) << form.mantissa)
    bits, size = lax.bitcast_convert_type(x, np.int32), lax.abs(x)

    def code_of(absolute):
        return lax.shift_right_arithmetic(absolute, np.int32(_MANTISSA - form.mantissa)) - bias

    code = code_of(bits & np.int32(np.iinfo(np.int32).max))
    if form.mantissa:
        # Adding the least normal number makes a subnormal one normal, without rounding.
        raised = code_of(lax.bitcast_convert_type(size + np.float32(form.tiny), np.int32))
        code = jnp.where(size < form.tiny, raised - np.int32(1 << form.mantissa), code)
    if has_infinity(dtype):
        code = jnp.where(size == np.inf, np.int32(form.infinity), code)
    if form.nan is not None:
        code = jnp.where(x != x, np.int32(form.nan), code)
    if form.has_sign:
        code = jnp.where(bits < 0, code | np.int32(1 << (form.bits - 1)), code)
    return code.astype(np.uint8)


def from_bits(bits: jax.Array, dtype: np.dtype, storage: np.dtype) -> jax.Array:
    """The inverse of `to_bits`; `storage` is the dtype in which the results are stored."""
    primitive = FROM_BITS if dtype in FLOAT else FIT
    return primitive.bind(bits, dtype=dtype, storage=storage)


def rounded_to_power(x: jax.Array) -> jax.Array:
    """Rounds floats to float8_e8m0fnu, ties up; zero, negative and large numbers become NaN.

    Args:
      x: float32 or float64.

    Returns:
      float32.
    """
    info = jnp.finfo(x.dtype)
    integer = np.dtype(f"int{info.bits}").type

    def bits_of(value):
        return np.array(value, x.dtype).view(integer)

    bits = lax.bitcast_convert_type(x, integer)
    rounded = (bits + integer(1 << (info.nmant - 1))) & integer(-(1 << info.nmant))
    result = lax.bitcast_convert_type(rounded, x.dtype).astype(np.float32)
    # The two least powers are chosen, not computed: the least is subnormal in float32.
    small = jnp.where(bits <= bits_of(2.0**-127), np.float32(2.0**-127), np.float32(2.0**-126))
    result = jnp.where(bits < bits_of(2.0**-126), small, result)
    lowest = 1 if x.dtype == np.float32 else bits_of(2.0**-127)
    is_outside = (bits < lowest) | (bits >= bits_of(1.5 * 2.0**127))
    return jnp.where(is_outside, np.float32(np.nan), result)


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
    """The results of a primitive that orders its operands.

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
