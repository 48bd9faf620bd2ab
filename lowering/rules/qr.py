"""QR decompositions and products of Householder reflectors."""

import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.linalg import householder, scaling
from lowering.linalg.batching import on_batches
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER

_moderate = on_batches(scaling.moderate)
_geqp3 = on_batches(householder.geqp3)
_product = on_batches(householder.product)

_geqrf = decomposition("geqrf")(on_batches(householder.geqrf))
decomposition("householder_product")(_product)
decomposition("ormqr")(on_batches(householder.multiply))


@decomposition("geqp3")
def geqp3(a, jpvt, **_):
    return _geqp3(a, jpvt)


@rule("qr", traits=Trait.LONG)
def qr(ctx, x, *, pivoting, full_matrices, **_):
    """The diagonal of R has the signs that it has in LAPACK."""
    if pivoting:
        return ctx.lower(_pivoted_qr, x, avals=ctx.in_avals, full_matrices=full_matrices)
    # TensorFlow's kernel squares elements, which would overflow or underflow without scaling.
    factor, x = ctx.lower(_moderate, x, avals=ctx.in_avals)
    q, r = tf.raw_ops.Qr(input=x, full_matrices=full_matrices)
    return q, r * tf.cast(factor, r.dtype)[..., tf.newaxis, tf.newaxis]


@decomposition("qr", target=CONSUMER)
def qr_consumer(x, *, pivoting, full_matrices, **_):
    """A decomposition by Householder reflections."""
    if pivoting:
        return _pivoted_qr(x, full_matrices=full_matrices)
    if 0 in x.shape[-2:]:
        return _empty_qr(x, full_matrices)
    factor, x = _moderate(x)
    a, taus = _geqrf(x)
    q, r = _q_and_r(a, taus, full_matrices)
    return q, r * factor[..., None, None].astype(x.dtype)


def _pivoted_qr(x, *, full_matrices):
    jpvt = jnp.zeros((*x.shape[:-2], x.shape[-1]), np.int32)
    if 0 in x.shape[-2:]:
        return *_empty_qr(x, full_matrices), jpvt
    a, jpvt, taus = _geqp3(x, jpvt)
    return *_q_and_r(a, taus, full_matrices), jpvt - 1


def _q_and_r(a, taus, full_matrices):
    """Q and R, of which LAPACK returns one array: reflectors below the diagonal of R."""
    *batch, m, n = a.shape
    k = m if full_matrices else jax_compat.min_dim(m, n)
    padding = [(0, 0)] * (len(batch) + 1) + [(0, jax_compat.max_dim(k - n, 0))]
    return _product(jnp.pad(a, padding)[..., :k], taus), jnp.triu(a)[..., :k, :]


def _empty_qr(x, full_matrices):
    """Q and R of matrices without elements."""
    *batch, m, n = x.shape
    k = m if full_matrices else jax_compat.min_dim(m, n)
    q = jnp.broadcast_to(jnp.eye(m, k, dtype=x.dtype), (*batch, m, k))
    return q, jnp.zeros((*batch, k, n), x.dtype)
