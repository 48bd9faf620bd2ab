"""Words: uint32 as consumers of graphs hold it, in int32 with the same bits.

Sums, differences, products and bits are the same for both. The order is not: adding the least
integer, which only changes the highest bit, maps one order to the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.context import Context
from lowering.formats import narrow
from lowering.ops import constant, dtypes, emit
from lowering.ops.values import Value, full, is_known, tensor

WORDS = (np.uint32,)

# What consumers hold in other dtypes, but for what passes have legalized.
HELD = (*WORDS, *dtypes.LOW_PRECISION)


def is_held(aval: Any) -> bool:
    """Whether values are words that are held in int32."""
    return aval.dtype == dtypes.WORD and dtypes.is_narrow(dtypes.WORD)


def run_on_order(ctx: Context, *operands: Value) -> list[tf.Tensor]:
    """The results of an equation that orders its operands."""
    ordered = [
        flipped(x) if is_held(var.aval) else x
        for x, var in zip(operands, ctx.eqn.invars, strict=True)
    ]
    return [
        flipped(x) if is_held(var.aval) else x
        for x, var in zip(narrow.run_on_held(ctx, *ordered), ctx.eqn.outvars, strict=True)
    ]


def flipped(x: Value) -> Value:
    """Words as the integers that have their order; the inverse of this is the same."""
    least = np.iinfo(np.int32).min
    x = full(x)
    if is_known(x):
        return np.asarray(x, np.int32) ^ np.int32(least)
    return emit("AddV2", tensor(x), constant(least, np.int32))


def run_on_indices(
    ctx: Context,
    *operands: Value,
    data: Sequence[int] = (0,),
    **params: Any,
) -> list[tf.Tensor]:
    """The results of an equation whose operands but those at `data` are indices.

    Where consumers run it, an index that int32 does not hold is behind every array. `params`
    replace parameters.
    """

    def index(x):
        last = np.iinfo(np.int32).max
        if is_known(x):
            return np.where(np.asarray(x, np.int32) < 0, last, x).astype(np.int32)
        is_large = emit("Less", x, constant(0, np.int32))
        return emit("SelectV2", is_large, constant(last, np.int32), x)

    held = [
        index(full(x)) if i not in data and is_held(var.aval) else x
        for i, (x, var) in enumerate(zip(operands, ctx.eqn.invars, strict=True))
    ]
    return narrow.run_on_held(ctx, *held, **params)
