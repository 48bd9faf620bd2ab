"""Calls back into Python."""

import functools
import warnings
from collections.abc import Sequence

import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat
from lowering.ops import dtypes
from lowering.registry import Trait, rule
from lowering.targets import CONSUMER, Mode


@rule("pure_callback", "io_callback", in_storage=True, traits=Trait.NOT_FOLDED | Trait.PER_DEVICE)
@rule("debug_callback", "debug_print", in_storage=True, traits=Trait.NOT_FOLDED)
def callback(ctx, *operands, **_):
    """When the graph runs, JAX runs the equation, in the process that lowered it.

    The ops are stateful, which a `tf.function` runs in program order. TensorFlow's optimizer runs
    stateless ops on constants, even in a branch that is never taken because its callback raises.
    """
    if ctx.mode is Mode.COMPILED:
        ctx.unsupported(
            "code that XLA compiles for TensorFlow cannot call back into Python",
            "Run it without jit_compile, or remove the callback",
        )

    # Symbolic shapes are known only then.
    shapes = {
        i: ctx.shape(aval.shape)
        for i, aval in enumerate(ctx.out_avals)
        if not avals.is_static(aval.shape)
    }
    # TensorFlow never forgets what a graph calls: it must not hold what lowers the program.
    run = functools.partial(_run, ctx.eqn, tuple(shapes))
    results = tf.numpy_function(
        run,
        [*operands, *shapes.values()],
        [dtypes.to_tf(aval.dtype) for aval in ctx.out_avals],
    )
    # One result comes without a list.
    return tf.nest.flatten(results) if ctx.out_avals else []


@rule("debug_callback", "debug_print", target=CONSUMER, in_storage=True)
def debugging_of_consumer(ctx, *operands, **_):
    """Left out, as a program computes the same without it."""
    warnings.warn(
        f"{ctx.eqn.primitive.name} is left out for target {ctx.target.name!r}, whose runtime "
        "cannot call back into Python",
        stacklevel=2,
    )
    return []


@rule("pure_callback", "io_callback", target=CONSUMER, in_storage=True)
def callback_of_consumer(ctx, *operands, **_):
    ctx.unsupported(
        "its runtime cannot call back into Python", "Leave the callback out of what is exported"
    )


def _run(eqn: jex_core.JaxprEqn, symbolic: Sequence[int], *arrays: np.ndarray) -> list[np.ndarray]:
    """Runs an equation on arrays in storage dtypes; returns its results in storage dtypes.

    Args:
      eqn: the equation.
      symbolic: the positions of its results of symbolic shape.
      *arrays: its operands, then the shapes of these results.
    """
    operands, shapes = arrays[: len(eqn.invars)], arrays[len(eqn.invars) :]
    values = [
        x.astype(var.aval.dtype) if dtypes.is_narrow(var.aval.dtype) else x
        for x, var in zip(operands, eqn.invars, strict=True)
    ]
    known = dict(zip(symbolic, map(tuple, shapes), strict=True))
    results = jax_compat.evaluate(eqn, values, known)
    return [np.asarray(x, dtypes.storage(x.dtype)) for x in results]
