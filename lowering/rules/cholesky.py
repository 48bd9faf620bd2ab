"""Cholesky decompositions."""

import jax.numpy as jnp
import tensorflow as tf
from jax import lax

from lowering.linalg import triangular
from lowering.linalg.batching import on_batches
from lowering.registry import decomposition, rule
from lowering.targets import CONSUMER
from lowering.tensors.nonfinite import nan_unless


@rule("cholesky")
def cholesky(ctx, x):
    """A matrix that is not positive definite gives NaN everywhere."""
    factor = tf.raw_ops.Cholesky(input=x)
    if not x.dtype.is_complex:
        return factor
    # Where TensorFlow fails on a complex matrix, it leaves zeros.
    diagonal = tf.math.real(tf.linalg.diag_part(factor))
    succeeded = tf.reduce_all(diagonal != 0, axis=-1)[..., tf.newaxis, tf.newaxis]
    return nan_unless(succeeded, factor)


decomposition("cholesky", target=CONSUMER)(on_batches(triangular.cholesky))


@decomposition("cholesky_update")
def cholesky_update(r_matrix, w_vector):
    """One Givens rotation per row, as in Golub and Van Loan, Matrix Computations, 6.5.4."""
    n = w_vector.shape[0]
    if n == 0:
        return r_matrix

    def rotate(k, state):
        r, w = state
        x, y = r[k, k], w[k]
        scale = jnp.maximum(abs(x), abs(y))
        x, y = x / scale, y / scale
        inverse = 1 / lax.sqrt(x * x + y * y)
        skip = w[k] == 0
        c, s = jnp.where(skip, 1, x * inverse), jnp.where(skip, 0, y * inverse)
        row = r[k]
        return lax.dynamic_update_index_in_dim(r, c * row + s * w, k, 0), c * w - s * row

    return lax.fori_loop(0, n, rotate, (r_matrix, w_vector))[0]
