"""Reductions by an arbitrary computation on scalars."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals
from lowering.arrays import computations
from lowering.registry import decomposition

# The primitive of each computation, and the reduction by it.
_MONOIDS = {
    "add": (lax.add, lax.reduce_sum),
    "mul": (lax.mul, lax.reduce_prod),
    "max": (lax.max, lax.reduce_max),
    "min": (lax.min, lax.reduce_min),
    "and": (lax.bitwise_and, lax.reduce_and),
    "or": (lax.bitwise_or, lax.reduce_or),
    "xor": (lax.bitwise_xor, lax.reduce_xor),
}


@decomposition("reduce")
def reduce(*operands_and_inits, jaxpr, dimensions, **_):
    """The computation is associative, as JAX demands, but need not be commutative.

    Initial values that are not neutral are used once. For a single element they are not used at
    all, as in XLA, which may assume that they are neutral.
    """
    count = len(operands_and_inits) // 2
    operands, inits = operands_and_inits[:count], operands_and_inits[count:]
    sizes = [operands[0].shape[axis] for axis in dimensions]
    monoid = computations.monoid(jaxpr)
    if monoid is None:
        combine = functools.partial(computations.elementwise, jaxpr)
        return computations.tree_reduce(combine, operands, inits, dimensions)
    op, reduce_all = _MONOIDS[monoid]
    result = reduce_all(operands[0], dimensions)
    with_init = op(lax.full_like(result, inits[0]), result)
    if avals.is_static(sizes):
        return [result if math.prod(sizes) == 1 else with_init]
    is_single = jnp.asarray(math.prod(sizes), np.int64) == 1
    return [lax.select_n(is_single, with_init, result)]
