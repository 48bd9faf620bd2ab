"""Solutions of triangular systems."""

import tensorflow as tf

from lowering.linalg import triangular
from lowering.linalg.batching import on_batches
from lowering.ops import cast, dtypes
from lowering.registry import decomposition, rule
from lowering.targets import CONSUMER


@rule("triangular_solve")
def triangular_solve(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """A zero on the diagonal gives infinities and NaNs, as in JAX."""
    dtype = b.dtype
    if dtype in (tf.float16, tf.bfloat16):
        a, b = (cast(x, dtypes.wider(dtype)) for x in (a, b))
    if unit_diagonal:
        a = tf.linalg.set_diag(a, tf.ones(ctx.shape(ctx.in_avals[0].shape[:-1]), a.dtype))
    if not left_side:
        # X op(A) = B is op(A)^T X^T = B^T.
        b = tf.linalg.matrix_transpose(b)
        transpose_a = not transpose_a
    if a.dtype.is_complex and conjugate_a != transpose_a:
        a = tf.math.conj(a)
    x = tf.raw_ops.MatrixTriangularSolve(matrix=a, rhs=b, lower=lower, adjoint=transpose_a)
    if not left_side:
        x = tf.linalg.matrix_transpose(x)
    return cast(x, dtype)


decomposition("triangular_solve", target=CONSUMER)(on_batches(triangular.solve))
