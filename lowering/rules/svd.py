"""Singular value decompositions."""

import functools

import jax.numpy as jnp
import tensorflow as tf

from lowering.linalg import jacobi
from lowering.linalg.batching import on_batches
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER
from lowering.tensors.nonfinite import nan_unless, where_finite

_svd = on_batches(jacobi.svd)


@rule("svd", traits=Trait.LONG | Trait.NOT_UNIQUE)
def svd(ctx, x, *, full_matrices, compute_uv, **_):
    """A NaN or an infinity gives NaN.

    Compiled, TensorFlow's op is too inexact in double precision (1e-8 of the norm) and lacks
    complex matrices.
    """
    params = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    m, n = ctx.in_avals[0].shape[-2:]
    if m == 0 or n == 0:
        return ctx.lower(_empty_svd, x, avals=ctx.in_avals, **params)

    def op_by_op(x):
        finite, x = where_finite(x)
        s, u, v = tf.raw_ops.Svd(input=x, **params)
        results = [tf.math.real(s)]
        if compute_uv:
            results += [u, tf.linalg.matrix_transpose(v, conjugate=True)]
        return [nan_unless(finite, result) for result in results]

    compiled = functools.partial(ctx.lower, _svd, avals=ctx.in_avals, **params)
    return ctx.by_mode(op_by_op, compiled, x)


@decomposition("svd", target=CONSUMER)
def svd_consumer(x, *, full_matrices, compute_uv, **_):
    fun = _empty_svd if 0 in x.shape[-2:] else _svd
    return fun(x, full_matrices=full_matrices, compute_uv=compute_uv)


def _empty_svd(x, *, full_matrices, compute_uv):
    *batch, m, n = x.shape
    s = jnp.zeros((*batch, 0), jnp.real(x).dtype)
    if not compute_uv:
        return [s]
    u = jnp.eye(m, m if full_matrices else 0, dtype=x.dtype)
    vh = jnp.eye(n if full_matrices else 0, n, dtype=x.dtype)
    return [s, *(jnp.broadcast_to(y, (*batch, *y.shape)) for y in (u, vh))]
