"""Writes of a block whose place is computed."""

from jax import lax

from lowering.arrays import halves, words
from lowering.ops import dtypes
from lowering.ops.values import tensor
from lowering.passes.legalize.bitcasts import on_bits
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import TFJS
from lowering.tensors import blocks


@rule("dynamic_update_slice", keep_constants=True, traits=Trait.SELECTS)
def dynamic_update_slice(ctx, x, update, *starts):
    """A block that would reach beyond the operand is moved until it fits."""
    shape, sizes = ctx.in_avals[0].shape, ctx.in_avals[1].shape
    begin = [blocks.start(ctx, *axis) for axis in zip(starts, shape, sizes, strict=True)]
    return blocks.write(ctx, tensor(x), shape, tensor(update), sizes, begin)


@legalization("dynamic_update_slice", dtypes=dtypes.WORDS)
def dynamic_update_slice_of_words(x, update, *starts, **params):
    return on_bits(lax.dynamic_update_slice_p, x, update, *map(words.places, starts), **params)


@decomposition("dynamic_update_slice", target=TFJS, dtypes=dtypes.WORDS)
def dynamic_update_slice_of_halves(x, update, *starts):
    places = map(words.places, starts)
    return halves.on_halves(lax.dynamic_update_slice_p.bind, x, update, *places)
