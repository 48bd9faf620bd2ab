"""Slices whose start is computed."""

from jax import lax

from lowering.arrays import halves
from lowering.formats import words
from lowering.ops.values import tensor
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER, TFJS
from lowering.tensors import blocks


@rule("dynamic_slice", keep_constants=True, traits=Trait.SELECTS)
def dynamic_slice(ctx, x, *starts, slice_sizes):
    """A slice that would reach beyond the operand is moved until it fits."""
    shape = ctx.in_avals[0].shape
    begin = [blocks.start(ctx, *axis) for axis in zip(starts, shape, slice_sizes, strict=True)]
    return blocks.read(ctx, tensor(x), shape, begin, slice_sizes)


@rule("dynamic_slice", target=CONSUMER, dtypes=words.HELD, keep_constants=True)
def dynamic_slice_consumer(ctx, *operands, **_):
    return words.run_on_indices(ctx, *operands, data=(0,))[0]


@decomposition("dynamic_slice", target=TFJS, dtypes=words.WORDS)
def dynamic_slice_of_halves(x, *starts, **params):
    return halves.on_halves(lax.dynamic_slice_p.bind, x, *map(halves.places, starts), **params)
