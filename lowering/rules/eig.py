"""Schur decompositions and eigenvalues of general matrices."""

import functools

import tensorflow as tf

from lowering.linalg import schur as schur_
from lowering.linalg.batching import on_batches
from lowering.ops import dtypes
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER
from lowering.tensors.nonfinite import nan_unless, where_finite

_eig = on_batches(schur_.eig)
_schur = on_batches(schur_.schur)


@decomposition("schur", traits=Trait.LONG | Trait.NOT_UNIQUE)
def schur(x, *, compute_schur_vectors, **_):
    """A value that is not finite gives NaN."""
    t, z = _schur(x, compute_vectors=compute_schur_vectors)
    return [t, z] if compute_schur_vectors else [t]


@rule("eig", traits=Trait.LONG | Trait.NOT_UNIQUE)
def eig(ctx, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    """Vectors have norm one and a largest component that is real; values come in any order.

    TensorFlow's op has no XLA kernel and no left eigenvectors, and refuses NaN.
    """
    decompose = functools.partial(
        ctx.lower,
        _eig,
        avals=ctx.in_avals,
        left=compute_left_eigenvectors,
        right=compute_right_eigenvectors,
    )

    def op_by_op(x):
        finite, x = where_finite(x)
        dtype = dtypes.to_tf(ctx.out_avals[0].dtype)
        w, v = tf.raw_ops.Eig(input=x, compute_v=compute_right_eigenvectors, Tout=dtype)
        results = [nan_unless(finite, w)]
        if compute_right_eigenvectors:
            normalized = _normalized_complex if x.dtype.is_complex else _normalized_real
            v = ctx.lower(normalized, v, w, avals=ctx.out_avals[::-1])
            results.append(nan_unless(finite, v))
        return results

    if compute_left_eigenvectors or ctx.in_avals[0].shape[-1] == 0:
        return decompose(x)
    return ctx.by_mode(op_by_op, decompose, x)


@decomposition("eig", target=CONSUMER)
def eig_consumer(x, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    return _eig(x, left=compute_left_eigenvectors, right=compute_right_eigenvectors)


_normalized_real = on_batches(schur_.normalized)


@on_batches
def _normalized_complex(v, w):
    return schur_.normalized(v, None)
