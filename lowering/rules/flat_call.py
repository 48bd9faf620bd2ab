"""Calls of programs whose operands are flattened to vectors; see `lowering.passes.flattening`."""

from lowering.registry import rule
from lowering.targets import Mode


@rule("flat_call", keep_constants=True, in_storage=True)
def flat_call(ctx, *operands, jaxpr, flattened):
    """Eagerly, the program runs as it was, because only a graph can share functions."""
    if ctx.mode is Mode.EAGER:
        return ctx.run(jaxpr, *operands)
    return ctx.lowering.call_flat(flattened, operands)
