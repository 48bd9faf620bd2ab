"""Calls back into Python."""

import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.ops import dtypes
from lowering.registry import Trait, rule
from lowering.targets import Mode


@rule("pure_callback", "io_callback", held=True, traits=Trait.NOT_FOLDED | Trait.PER_DEVICE)
@rule("debug_callback", "debug_print", held=True, traits=Trait.NOT_FOLDED)
def callback(ctx, *operands, **_):
    """When the graph runs, JAX runs the equation, in the process that lowered it.

    All but pure callbacks are stateful ops, which a `tf.function` runs in program order.
    """
    if ctx.mode is Mode.COMPILED:
        ctx.unsupported(
            "code that XLA compiles for TensorFlow cannot call back into Python",
            "Run it without jit_compile, or remove the callback",
        )

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        values = [
            x.astype(aval.dtype) if dtypes.is_narrow(aval.dtype) else x
            for x, aval in zip(arrays, ctx.in_avals, strict=True)
        ]
        results = jax_compat.evaluate(ctx.eqn, values)
        return [np.asarray(x, dtypes.held(x.dtype)) for x in results]

    results = tf.numpy_function(
        run,
        operands,
        [dtypes.to_tf(aval.dtype) for aval in ctx.out_avals],
        stateful=ctx.eqn.primitive.name != "pure_callback",
    )
    # One result comes without a list.
    return tf.nest.flatten(results) if ctx.out_avals else []
