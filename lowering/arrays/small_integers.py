"""Contractions of integers of eight bits or fewer as contractions of float32.

Runtimes multiply float32 many times faster than int32. A product of such integers is exact in
float32, and so is a sum of products that cannot exceed 2^24. Longer sums are cut into blocks, whose
sums are added as integers.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from lowering import registry

# Up to this number, all integers are numbers of float32.
_EXACT = 1 << 24
# Sums of more blocks are left to int32, as each block takes several ops.
_MOST_BLOCKS = 64

# Converts floats that are integers of its range. In JAX a conversion takes other floats, too.
TO_INTEGERS = registry.new_primitive("to_integers")
TO_INTEGERS.def_abstract_eval(lambda x, dtype: x.update(dtype=dtype))
TO_INTEGERS.def_impl(lambda x, dtype: x.astype(dtype))

Contraction = Callable[[jax.Array, jax.Array], jax.Array]


def contraction(
    contract: Contraction,
    lhs: jax.Array,
    rhs: jax.Array,
    *,
    axes: Sequence[tuple[int, int]],
    terms: Any,
    out: np.dtype,
) -> jax.Array | None:
    """A contraction of small integers by contractions of float32, modulo the range of `out`.

    Args:
      contract: the contraction of two arrays of float32, in float32.
      lhs, rhs: the operands.
      axes: the axes along which the operands may be cut, if any: one of `lhs`, and that of `rhs`
        over which products are summed with it.
      terms: how many products each element of the result is a sum of.
      out: the dtype of the result.

    Returns:
      the result, or None if it takes other dtypes, unknown sizes or too many blocks.
    """
    most = _exact_terms(lhs.dtype, rhs.dtype)
    if not most or not jnp.issubdtype(out, np.integer) or not isinstance(terms, int):
        return None
    blocks = [(lhs, rhs)] if terms <= most else _blocks(lhs, rhs, axes, terms, most)
    if not blocks:
        return None
    accumulator = np.dtype(np.int64 if np.dtype(out).itemsize == 8 else np.int32)
    sums = [contract(*(x.astype(np.float32) for x in block)) for block in blocks]
    sums = [TO_INTEGERS.bind(x, dtype=accumulator) for x in sums]
    return functools.reduce(lax.add, sums).astype(out)


def _blocks(lhs, rhs, axes, terms, most):
    """Parts of operands whose contractions are sums of at most `most` products; or none."""
    if not axes:
        return []
    lhs_axis, rhs_axis = max(axes, key=lambda pair: lhs.shape[pair[0]])
    size = lhs.shape[lhs_axis]
    step = most // (terms // size)
    if step == 0 or math.ceil(size / step) > _MOST_BLOCKS:
        return []
    return [
        [
            lax.slice_in_dim(x, start, min(start + step, size), axis=axis)
            for x, axis in ((lhs, lhs_axis), (rhs, rhs_axis))
        ]
        for start in range(0, size, step)
    ]


def _exact_terms(lhs, rhs):
    """How many products of two dtypes have an exact sum; 0 if one of them is of more bits."""
    largest = [_largest(dtype) for dtype in (lhs, rhs)]
    return _EXACT // math.prod(largest) if all(largest) else 0


def _largest(dtype):
    if not jnp.issubdtype(dtype, np.integer):
        return 0
    info = ml_dtypes.iinfo(dtype)
    return max(-int(info.min), int(info.max)) if info.bits <= 8 else 0
