"""LU decompositions and their pivots."""

import functools

import numpy as np
import tensorflow as tf

from lowering.linalg import lu as lu_
from lowering.linalg.batching import on_batches
from lowering.registry import Trait, decomposition, rule

# Pivots as LAPACK's; a singular matrix gives a zero on the diagonal of U.
lu = decomposition("lu", traits=Trait.LONG)(on_batches(lu_.lu))
_pivots = on_batches(lu_.pivots, rank=1)
decomposition("lu_pivots_to_permutation")(on_batches(lu_.permutation, rank=1))


@rule("lu", dtypes=(np.float32, np.float64))
def lu_real(ctx, a):
    """TensorFlow's op has no XLA kernel, takes square matrices only and refuses singular ones."""
    decompose = functools.partial(ctx.lower, lu, avals=ctx.in_avals)

    def op_by_op(a):
        # The determinant comes from the same decomposition, and is zero if a pivot is zero.
        log_determinant = tf.raw_ops.LogMatrixDeterminant(input=a).log_abs_determinant
        is_regular = tf.reduce_all(tf.math.is_finite(log_determinant))
        return tf.cond(is_regular, lambda: factor(a), lambda: decompose(a))

    def factor(a):
        factors, permutation = tf.raw_ops.Lu(input=a, output_idx_type=tf.int32)
        return [factors, ctx.lower(_pivots, permutation, avals=[ctx.out_avals[2]]), permutation]

    m, n = ctx.in_avals[0].shape[-2:]
    return ctx.by_mode(op_by_op, decompose, a) if m == n else decompose(a)
