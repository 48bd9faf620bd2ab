"""The last dimension unstacked and stacked: the uint32 of PRNG keys that are moved."""

import tensorflow as tf

from lowering.registry import Trait, rule


@rule("unstack_last", traits=Trait.SELECTS)
def unstack_last(ctx, x):
    return tf.unstack(x, len(ctx.out_avals), axis=-1)


@rule("stack_last", traits=Trait.SELECTS)
def stack_last(ctx, *operands):
    return tf.stack(operands, -1)
