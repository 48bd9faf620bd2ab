"""Reductions by an arbitrary computation on scalars."""

from jax import lax

from lowering.arrays import computations
from lowering.registry import decomposition

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
    """The computation is taken to be associative, as JAX demands, but not to be commutative.

    An initial value that is not neutral is used once. For a single element it is not used at all:
    XLA, which may take it to be neutral, does so there.
    """
    count = len(operands_and_inits) // 2
    operands, inits = operands_and_inits[:count], operands_and_inits[count:]
    if all(operands[0].shape[axis] == 1 for axis in dimensions):
        return [lax.squeeze(x, dimensions) for x in operands]
    monoid = computations.monoid(jaxpr)
    if monoid is not None:
        combine, reduce_all = _MONOIDS[monoid]
        result = reduce_all(operands[0], dimensions)
        return [combine(lax.full_like(result, inits[0]), result)]

    def combine_rank(rank):
        return computations.elementwise(jaxpr, rank)

    return computations.tree_reduce(combine_rank, operands, inits, dimensions)
