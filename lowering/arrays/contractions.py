"""Contractions that are faster as products of elements than as products of matrices.

Where a contraction adds nothing, or has one sum for each batch element, its matrices have a single
row, column or both. Runtimes are slow on many of them.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals


def is_of_elements(
    lhs_shape: Sequence[Any], rhs_shape: Sequence[Any], dimension_numbers: Any
) -> bool:
    """Whether `product_of_elements` is the faster form of a `dot_general`."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    contracted = [lhs_shape[axis] for axis in lhs_contract]
    lhs_free = _without(lhs_shape, (*lhs_contract, *lhs_batch))
    rhs_free = _without(rhs_shape, (*rhs_contract, *rhs_batch))
    if lhs_batch and lhs_contract:
        return _are_one(contracted) or _are_one([*lhs_free, *rhs_free])
    is_scaled = _are_one(lhs_free) or _are_one(rhs_free)
    return not lhs_contract or (_are_one(contracted) and is_scaled)


def _without(shape, axes):
    return [size for axis, size in enumerate(shape) if axis not in axes]


def _are_one(sizes):
    return all(isinstance(size, int) and size == 1 for size in sizes)


def product_of_elements(
    lhs: jax.Array,
    rhs: jax.Array,
    *,
    dimension_numbers: Any,
    permutation: Sequence[int] | None,
    dtypes: Sequence[np.dtype],
) -> jax.Array:
    """A `dot_general` as a product of broadcast arrays, summed over the contracted axes.

    Args:
      lhs, rhs: the operands.
      dimension_numbers: as of the primitive.
      permutation: the order of the axes of the result, None for that of the primitive.
      dtypes: what to convert lhs, rhs, their products, and the result to. Sums of low precision
        are rounded once.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = [i for i in range(lhs.ndim) if i not in (*lhs_contract, *lhs_batch)]
    rhs_free = [j for j in range(rhs.ndim) if j not in (*rhs_contract, *rhs_batch)]
    # For each axis of the result, the axis of each operand; contracted axes come last.
    pairs = [
        *zip(lhs_batch, rhs_batch, strict=True),
        *((i, None) for i in lhs_free),
        *((None, j) for j in rhs_free),
    ]
    pairs = pairs if permutation is None else [pairs[i] for i in permutation]
    rank = len(pairs)
    pairs += [
        (i, j)
        for i, j in zip(lhs_contract, rhs_contract, strict=True)
        if not _are_one([lhs.shape[i]])
    ]
    sizes = [rhs.shape[j] if i is None else lhs.shape[i] for i, j in pairs]
    lhs_dtype, rhs_dtype, dtype, out = dtypes
    dtype = np.dtype(np.float32) if np.dtype(dtype) in avals.HALF_FLOATS else dtype
    x = _spread(converted(converted(lhs, lhs_dtype), dtype), [i for i, _ in pairs], sizes)
    y = _spread(converted(converted(rhs, rhs_dtype), dtype), [j for _, j in pairs], sizes)
    product = x & y if dtype == np.bool_ else lax.mul(x, y)
    axes = tuple(range(rank, len(pairs)))
    if axes:
        product = (lax.reduce_or if dtype == np.bool_ else lax.reduce_sum)(product, axes)
    return converted(product, out)


def _spread(x, axes, sizes):
    """`x`, broadcast to `sizes`; axis i of the result is axis `axes[i]` of `x`, if that is one."""
    kept = [axis for axis in axes if axis is not None]
    x = lax.squeeze(x, [axis for axis in range(x.ndim) if axis not in kept])
    x = lax.transpose(x, np.argsort(np.argsort(kept)))
    return lax.broadcast_in_dim(x, sizes, [i for i, axis in enumerate(axes) if axis is not None])


def converted(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """An array in another dtype; complex numbers lose their imaginary part where that is real."""
    x = lax.real(x) if jnp.iscomplexobj(x) and not np.issubdtype(dtype, np.complexfloating) else x
    return lax.convert_element_type(x, dtype)
