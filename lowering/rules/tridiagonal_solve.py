"""Solutions of tridiagonal systems."""

import functools

import tensorflow as tf

from lowering.linalg import tridiagonal
from lowering.linalg.batching import on_batches
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER
from lowering.tensors.nonfinite import nan_unless

_solve = on_batches(tridiagonal.solve, rank=1)


@rule("tridiagonal_solve", traits=Trait.LONG)
def tridiagonal_solve(ctx, dl, d, du, b, *, perturb_singular):
    """A singular system gives NaN. TensorFlow's op has no XLA kernel that pivots."""

    def op_by_op(dl, d, du, b):
        # For a singular complex system the op gives zeros. A right-hand side of ones tells these
        # from a solution: it has no solution that is zero.
        is_tested = b.dtype.is_complex and not perturb_singular
        rhs = tf.concat([b, tf.expand_dims(tf.ones_like(d), -1)], -1) if is_tested else b
        x = tf.raw_ops.TridiagonalSolve(
            diagonals=tf.stack([du, d, dl], axis=-2), rhs=rhs, perturb_singular=perturb_singular
        )
        if not is_tested:
            return x
        x, of_ones = tf.split(x, [-1, 1], axis=-1)
        succeeded = tf.reduce_any(of_ones != 0, axis=-2, keepdims=True)
        return nan_unless(succeeded, x)

    compiled = functools.partial(
        ctx.lower, _solve, avals=ctx.in_avals, perturb_singular=perturb_singular
    )
    return ctx.by_mode(op_by_op, compiled, dl, d, du, b)


decomposition("tridiagonal_solve", target=CONSUMER)(_solve)
