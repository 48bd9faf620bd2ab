"""Eigenvalues and eigenvectors of Hermitian matrices."""

import functools

import jax.numpy as jnp
import tensorflow as tf

from lowering.linalg import jacobi
from lowering.linalg.batching import on_batches
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER
from lowering.tensors.nonfinite import nan_unless, where_finite


@rule("eigh", traits=Trait.LONG | Trait.NOT_UNIQUE)
def eigh(ctx, x, *, lower, **_):
    """One triangle is read; eigenvalues are always sorted; a NaN in it gives NaN.

    Compiled, TensorFlow's op is too inexact in double precision (1e-8 of the norm) and wrong for
    complex matrices.
    """
    if not lower:
        x = tf.linalg.matrix_transpose(x, conjugate=True)
    x = tf.linalg.band_part(x, -1, 0)

    def op_by_op(x):
        finite, x = where_finite(x)
        w, v = tf.raw_ops.SelfAdjointEigV2(input=x, compute_v=True)
        return [nan_unless(finite, v), nan_unless(finite, tf.math.real(w))]

    return ctx.by_mode(op_by_op, functools.partial(ctx.lower, _eigh, avals=ctx.in_avals), x)


@on_batches
def _eigh(x):
    return jacobi.eigh(x)[::-1]


@decomposition("eigh", target=CONSUMER)
def eigh_consumer(x, *, lower, **_):
    return _eigh(jnp.tril(x if lower else jnp.conj(jnp.swapaxes(x, -1, -2))))
