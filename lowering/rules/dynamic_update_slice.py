"""Writes of a block whose place is computed."""

from jax import lax

from lowering.arrays import uint32, uint32_parts
from lowering.ops import dtypes
from lowering.ops.values import tensor
from lowering.passes.legalize.bitcast_uint32 import on_bits
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import TFJS
from lowering.tensors import blocks


@rule("dynamic_update_slice", keep_constants=True, traits=Trait.SELECTS)
def dynamic_update_slice(ctx, x, update, *starts):
    """A block that would reach beyond the operand is moved until it fits."""
    shape, sizes = ctx.in_avals[0].shape, ctx.in_avals[1].shape
    begin = [blocks.start(ctx, *axis) for axis in zip(starts, shape, sizes, strict=True)]
    return blocks.write(ctx, tensor(x), shape, tensor(update), sizes, begin)


@legalization("dynamic_update_slice", dtypes=dtypes.UNSIGNED_32)
def dynamic_update_slice_uint32(x, update, *starts, **params):
    return on_bits(lax.dynamic_update_slice_p, x, update, *map(uint32.indices, starts), **params)


@decomposition("dynamic_update_slice", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def dynamic_update_slice_uint32_tfjs(x, update, *starts):
    places = map(uint32.indices, starts)
    return uint32_parts.on_parts(lax.dynamic_update_slice_p.bind, x, update, *places)
