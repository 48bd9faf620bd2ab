"""Slices whose start is computed."""

from lowering.registry import rule
from lowering.tensors import blocks, indexing


@rule("dynamic_slice", keep_constants=True)
def dynamic_slice(ctx, x, *starts, slice_sizes):
    """A slice that would reach beyond the operand is moved until it fits."""
    shape = ctx.in_avals[0].shape
    starts = [
        blocks.start(ctx, start, dim - size)
        for start, dim, size in zip(starts, shape, slice_sizes, strict=True)
    ]
    return blocks.read(ctx, indexing.tensor(x), shape, starts, slice_sizes)
