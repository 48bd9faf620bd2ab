"""Elementwise choice among cases."""

import tensorflow as tf

from lowering.ops import constant, emit
from lowering.registry import Trait, rule


@rule("select_n", traits=Trait.ELEMENTWISE | Trait.SELECTS)
def select_n(ctx, which, *cases):
    if len(cases) == 1:
        return cases[0]
    if which.dtype == tf.bool:
        return emit("SelectV2", which, cases[1], cases[0])
    result = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        is_below = emit("LessEqual", which, constant(i, which.dtype))
        result = emit("SelectV2", is_below, cases[i], result)
    return result
