"""Equations on complex numbers that targets without such numbers take all the same, if any."""

from lowering.formats import boundary
from lowering.registry import Trait, rule


@rule("unsplit", traits=Trait.NOT_FOLDED)
def unsplit(ctx, *parts, eqn):
    """Calls of TensorFlow get tensors of complex numbers; most other rules refuse them."""
    operands = boundary.joined(parts, [var.aval for var in eqn.invars])
    results = ctx.equation(eqn, *operands)
    return boundary.split(results)
