"""Elementwise choice among cases."""

import numpy as np
import tensorflow as tf

from lowering.ops import constant, emit, values
from lowering.registry import Trait, rule


@rule("select_n", keep_constants=True, traits=Trait.ELEMENTWISE | Trait.SELECTS)
def select_n(ctx, which, *operands):
    """What is known to be chosen everywhere is the result; nothing needs the other cases then."""
    if isinstance(which, np.ndarray) and which.size and which.min() == which.max():
        chosen = np.clip(int(which.flat[0]), 0, len(operands) - 1)
        return values.tensor(operands[chosen], ctx.in_avals[1].dtype)
    if len(operands) == 1:
        return values.tensor(operands[0], ctx.in_avals[1].dtype)
    which, *cases = map(values.tensor, (which, *operands), (aval.dtype for aval in ctx.in_avals))
    if which.dtype == tf.bool:
        return emit("SelectV2", which, cases[1], cases[0])
    result = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        is_below = emit("LessEqual", which, constant(i, which.dtype))
        result = emit("SelectV2", is_below, cases[i], result)
    return result
