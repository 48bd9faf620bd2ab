"""Equations on dtypes that the target lacks, which it takes all the same, if any."""

from lowering import boundary
from lowering.context import describe
from lowering.errors import UnsupportedError
from lowering.ops import kernels
from lowering.registry import Trait, rule


@rule("unsplit", in_storage=True, traits=Trait.NOT_FOLDED)
def unsplit(ctx, *parts, eqn, reason, **_):
    """What calls TensorFlow or Python says itself what it does; other rules are refused."""
    if reason:
        raise UnsupportedError.with_location(describe(eqn, ctx.target, reason))
    with kernels.unchecked():
        operands = boundary.joined(parts, [var.aval for var in eqn.invars])
    return boundary.split(ctx.equation(eqn, *operands), [var.aval for var in eqn.outvars])
