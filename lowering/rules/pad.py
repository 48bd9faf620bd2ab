"""Padding: before, after and between elements, or less than none."""

from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from lowering.registry import Trait, rule
from lowering.tensors import movement


@rule("pad", traits=Trait.SELECTS)
def pad(ctx, x, value, *, padding_config):
    """A negative amount before or after removes elements, after those between have been put in."""
    shape, result = list(ctx.in_avals[0].shape), ctx.out_aval.shape
    lows, highs, interiors = ([config[i] for config in padding_config] for i in range(3))
    if any(interiors) and ctx.takes_xla_ops:
        low, high, interior = (ctx.shape(amounts) for amounts in (lows, highs, interiors))
        return gen_xla_ops.xla_pad(x, value, low, high, interior)
    # There is nothing between fewer than two elements.
    interiors = [0 if _is_int(d) and d <= 1 else k for d, k in zip(shape, interiors, strict=True)]
    if any(interiors):
        x, shape = _dilate(ctx, x, value, shape, interiors)
        # The last element is followed by as many values as lie between two.
        highs = [high - interior for high, interior in zip(highs, interiors, strict=True)]
    return _edges(ctx, x, value, shape, lows, highs, result)


def _dilate(ctx, x, value, shape, interiors):
    """Puts values after each element: they are padding of a new axis."""
    split, paddings, padded, merged = [], [], [], []
    for dim, interior in zip(shape, interiors, strict=True):
        split.append(dim)
        padded.append(dim)
        paddings.append((0, 0))
        merged.append(dim * (interior + 1))
        if interior:
            split.append(1)
            padded.append(interior + 1)
            paddings.append((0, interior))
    x = movement.reshape(ctx, x, split)
    x = movement.pad(ctx, x, split, value, paddings, padded)
    return movement.reshape(ctx, x, merged), merged


def _edges(ctx, x, value, shape, lows, highs, result):
    """Removes where the amount is negative, then adds where it is positive."""
    cropped = [
        dim + _negative(low) + _negative(high)
        for dim, low, high in zip(shape, lows, highs, strict=True)
    ]
    if any(_is_int(dim) and dim < 0 for dim in cropped):
        # More is removed from one end than there is: all that is left is padding.
        return movement.broadcast(ctx, value, result)
    starts = [-_negative(low) for low in lows]
    x = movement.slice_(ctx, x, shape, starts, cropped)
    paddings = [(_positive(low), _positive(high)) for low, high in zip(lows, highs, strict=True)]
    return movement.pad(ctx, x, cropped, value, paddings, result)


def _is_int(dim):
    return isinstance(dim, int)


def _negative(amount):
    return min(amount, 0) if _is_int(amount) else 0


def _positive(amount):
    return max(amount, 0) if _is_int(amount) else amount
