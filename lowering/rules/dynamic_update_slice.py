"""Writes of a block whose place is computed."""

from jax import lax

from lowering.arrays import halves
from lowering.formats import words
from lowering.ops.values import tensor
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER, TFJS
from lowering.tensors import blocks


@rule("dynamic_update_slice", keep_constants=True, traits=Trait.SELECTS)
def dynamic_update_slice(ctx, x, update, *starts):
    """A block that would reach beyond the operand is moved until it fits."""
    shape, sizes = ctx.in_avals[0].shape, ctx.in_avals[1].shape
    begin = [blocks.start(ctx, *axis) for axis in zip(starts, shape, sizes, strict=True)]
    return blocks.write(ctx, tensor(x), shape, tensor(update), sizes, begin)


@rule("dynamic_update_slice", target=CONSUMER, dtypes=words.HELD, keep_constants=True)
def dynamic_update_slice_consumer(ctx, *operands, **_):
    return words.run_on_indices(ctx, *operands, data=(0, 1))[0]


@decomposition("dynamic_update_slice", target=TFJS, dtypes=words.WORDS)
def dynamic_update_slice_of_halves(x, update, *starts):
    places = map(halves.places, starts)
    return halves.on_halves(lax.dynamic_update_slice_p.bind, x, update, *places)
