"""Calls of programs on vectors of any length; see `lowering.passes.flattening`."""

from lowering.registry import rule
from lowering.targets import Mode


@rule("flat_call", keep_constants=True, held=True)
def flat_call(ctx, *operands, jaxpr, flattened):
    """Eagerly, the program is run as it was: there is no graph to share a function in."""
    if ctx.mode is Mode.EAGER:
        return ctx.run(jaxpr, *operands)
    return ctx.lowering.call_flat(flattened, operands)
