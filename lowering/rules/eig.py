"""Schur decompositions and eigenvalues of general matrices."""

import jax
import tensorflow as tf

from lowering.linalg import schur as schur_
from lowering.linalg.batching import batched
from lowering.ops import dtypes
from lowering.registry import decomposition, rule
from lowering.tensors.nonfinite import nan_unless, where_finite


@decomposition("schur")
def schur(x, *, compute_schur_vectors, **_):
    """A value that is not finite gives NaN."""
    t, z = batched(schur_.schur, x.ndim - 2, compute_vectors=compute_schur_vectors)(x)
    return [t, z] if compute_schur_vectors else [t]


@rule("eig")
def eig(ctx, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    """Vectors have norm one and a largest component that is real; the order of values is free.

    TensorFlow's op has no XLA kernel and no left eigenvectors, and refuses NaN.
    """
    avals = ctx.in_avals
    params = {"left": compute_left_eigenvectors, "right": compute_right_eigenvectors}

    def decompose(x):
        return ctx.lower(_eig, x, avals=avals, **params)

    def op_by_op(x):
        finite, x = where_finite(x)
        dtype = dtypes.to_tf(ctx.out_avals[0].dtype)
        w, v = tf.raw_ops.Eig(input=x, compute_v=compute_right_eigenvectors, Tout=dtype)
        results = [nan_unless(finite, w)]
        if compute_right_eigenvectors:
            is_real = not x.dtype.is_complex
            v = ctx.lower(_normalized, v, w, avals=ctx.out_avals[::-1], is_real=is_real)
            results.append(nan_unless(finite, v))
        return results

    n = avals[0].shape[-1]
    if compute_left_eigenvectors or n == 0:
        return decompose(x)
    return ctx.by_mode(op_by_op, decompose, x)


def _eig(x: jax.Array, *, left: bool, right: bool) -> list[jax.Array]:
    return batched(schur_.eig, x.ndim - 2, left=left, right=right)(x)


def _normalized(v: jax.Array, w: jax.Array, *, is_real: bool) -> jax.Array:
    normalize = schur_.normalized if is_real else _normalized_complex
    return batched(normalize, v.ndim - 2)(v, w)


def _normalized_complex(v: jax.Array, w: jax.Array) -> jax.Array:
    return schur_.normalized(v, None)
