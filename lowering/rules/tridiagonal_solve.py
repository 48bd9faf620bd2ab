"""Solutions of tridiagonal systems."""

import jax
import tensorflow as tf

from lowering.linalg import tridiagonal
from lowering.linalg.batching import batched
from lowering.registry import rule
from lowering.tensors.nonfinite import nan_unless


@rule("tridiagonal_solve")
def tridiagonal_solve(ctx, dl, d, du, b, *, perturb_singular):
    """A singular system gives NaN. TensorFlow's op has no XLA kernel that pivots."""

    def op_by_op(dl, d, du, b):
        # For a singular complex system the op gives zeros; one that is not has no zero solution
        # of this additional right-hand side.
        is_complex = b.dtype.is_complex and not perturb_singular
        rhs = tf.concat([b, tf.ones_like(d)[..., tf.newaxis]], -1) if is_complex else b
        x = tf.raw_ops.TridiagonalSolve(
            diagonals=tf.stack([du, d, dl], axis=-2), rhs=rhs, perturb_singular=perturb_singular
        )
        if not is_complex:
            return x
        succeeded = tf.reduce_any(x[..., -1:] != 0, axis=-2, keepdims=True)
        return nan_unless(succeeded, x[..., :-1])

    def compiled(dl, d, du, b):
        operands = (dl, d, du, b)
        params = {"perturb_singular": perturb_singular}
        return ctx.lower(_solve, *operands, avals=ctx.in_avals, **params)

    return ctx.by_mode(op_by_op, compiled, dl, d, du, b)


def _solve(
    dl: jax.Array, d: jax.Array, du: jax.Array, b: jax.Array, *, perturb_singular: bool
) -> jax.Array:
    solve = batched(tridiagonal.solve, d.ndim - 1, perturb_singular=perturb_singular)
    return solve(dl, d, du, b)
