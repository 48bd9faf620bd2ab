"""Padding before, after and between elements; amounts may be negative."""

from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from lowering import avals, jax_compat
from lowering.registry import Trait, rule
from lowering.tensors import movement


@rule("pad", traits=Trait.SELECTS)
def pad(ctx, x, value, *, padding_config):
    """Interior padding is inserted first; a negative amount then removes elements from an end."""
    shape, result = list(ctx.in_avals[0].shape), ctx.out_aval.shape
    lows, highs, interiors = ([config[i] for config in padding_config] for i in range(3))
    # There is nothing between fewer than two elements.
    interiors = [0 if _is_int(d) and d <= 1 else k for d, k in zip(shape, interiors, strict=True)]
    has_interior, crops_later = any(interiors), not all(map(_has_sign, (*lows, *highs)))
    if ctx.takes_xla_ops and (has_interior or crops_later):
        return gen_xla_ops.xla_pad(x, value, *map(ctx.shape, (lows, highs, interiors)))
    if has_interior:
        x, shape = _pad_interior(ctx, x, value, shape, interiors)
        # The last element is followed by padding, too.
        highs = [high - interior for high, interior in zip(highs, interiors, strict=True)]
    cropped = [
        dim + _negative(low) + _negative(high)
        for dim, low, high in zip(shape, lows, highs, strict=True)
    ]
    if any(_is_int(dim) and dim <= 0 for dim in cropped):
        # No element is left, or one end loses even more: the result is nothing but padding.
        return movement.broadcast(ctx, value, result)
    if not all(map(_has_sign, (*lows, *highs, *cropped))):
        return _pad_and_crop(ctx, x, value, shape, lows, highs, result)
    x = movement.slice_(ctx, x, shape, [-_negative(low) for low in lows], cropped)
    paddings = [(low - _negative(low), high - _negative(high)) for low, high in zip(lows, highs)]
    return movement.pad(ctx, x, cropped, value, paddings, result)


def _pad_and_crop(ctx, x, value, shape, lows, highs, result):
    """Pads by amounts of unknown sign: by none where one is negative, and removes elements then."""
    pairs = list(zip(lows, highs, strict=True))
    paddings = [(jax_compat.max_dim(low, 0), jax_compat.max_dim(high, 0)) for low, high in pairs]
    padded = [dim + low + high for dim, (low, high) in zip(shape, paddings, strict=True)]
    x = movement.pad(ctx, x, shape, value, paddings, padded)
    starts = [jax_compat.max_dim(-low, 0) for low in lows]
    return movement.slice_(ctx, x, padded, starts, result)


def _pad_interior(ctx, x, value, shape, interiors):
    """Inserts values after each element: padding of a new axis, which is then merged."""
    axes: list[tuple[movement.Dim, movement.Dim]] = []
    for dim, interior in zip(shape, interiors, strict=True):
        is_none = _is_int(interior) and interior == 0
        axes += [(dim, 0)] if is_none else [(dim, 0), (1, interior)]
    split, padded = [dim for dim, _ in axes], [dim + amount for dim, amount in axes]
    merged = [dim * (interior + 1) for dim, interior in zip(shape, interiors, strict=True)]
    x = movement.reshape(ctx, x, split)
    x = movement.pad(ctx, x, split, value, [(0, amount) for _, amount in axes], padded)
    return movement.reshape(ctx, x, merged), merged


def _is_int(dim):
    return isinstance(dim, int)


def _has_sign(amount):
    """Whether an amount is an int, or is known not to be negative."""
    return _is_int(amount) or avals.is_at_least(amount, 0)


def _negative(amount):
    return min(amount, 0) if _is_int(amount) else 0
