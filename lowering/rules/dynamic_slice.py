"""Slices whose start is computed."""

from jax import lax

from lowering.arrays import uint32, uint32_parts
from lowering.ops import dtypes
from lowering.ops.values import tensor
from lowering.passes.legalize.bitcast_uint32 import on_bits
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import TFJS
from lowering.tensors import blocks


@rule("dynamic_slice", keep_constants=True, traits=Trait.SELECTS)
def dynamic_slice(ctx, x, *starts, slice_sizes):
    """A slice that would reach beyond the operand is moved until it fits."""
    shape = ctx.in_avals[0].shape
    begin = [blocks.start(ctx, *axis) for axis in zip(starts, shape, slice_sizes, strict=True)]
    return blocks.read(ctx, tensor(x), shape, begin, slice_sizes)


@legalization("dynamic_slice", dtypes=dtypes.UNSIGNED_32)
def dynamic_slice_uint32(x, *starts, **params):
    return on_bits(lax.dynamic_slice_p, x, *map(uint32.indices, starts), **params)


@decomposition("dynamic_slice", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def dynamic_slice_uint32_tfjs(x, *starts, **params):
    return uint32_parts.on_parts(
        lax.dynamic_slice_p.bind, x, *map(uint32.indices, starts), **params
    )
