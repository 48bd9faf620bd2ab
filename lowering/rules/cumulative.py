"""Cumulative reductions along one axis."""

import functools

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays import computations, narrow_numbers, uint32_parts
from lowering.arrays import split_arithmetic as arithmetic
from lowering.arrays.limits import highest, lowest
from lowering.narrow_formats import E8M0, NARROW, infinity_is_nan
from lowering.ops import cast, constant, dtypes, emit, kernels
from lowering.registry import Trait, decomposition, on_promoted, rule
from lowering.targets import TFJS, XLA


@rule("cumsum", "cumprod", traits=Trait.PROMOTED)
def cumsum(ctx, x, *, axis, reverse, **_):
    """Integers wrap around. Low precision is accumulated in float32 and rounded once each."""
    op = "Cumsum" if ctx.eqn.primitive.name == "cumsum" else "Cumprod"
    if ctx.target.is_consumer and not kernels.supports(op, x.dtype):
        return ctx.lower(_by_steps, x, avals=ctx.in_avals, op=op, axis=axis, reverse=reverse)
    scan = functools.partial(emit, op, modular=True, reverse=reverse)
    if x.dtype.as_numpy_dtype in dtypes.LOW_PRECISION:
        return cast(scan(cast(x, tf.float32), constant(axis, tf.int32)), x.dtype)
    return scan(x, constant(axis, tf.int32))


@decomposition("cumsum", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def cumsum_uint32_tfjs(x, *, axis, reverse, **_):
    if not avals.is_at_most(x.shape[axis], arithmetic.MOST_SUMMED):
        return _by_steps(x, op="Cumsum", axis=axis, reverse=reverse)
    sums = functools.partial(lax.cumsum, axis=axis, reverse=reverse)
    return uint32_parts.join(*arithmetic.sum_by(sums, uint32_parts.split(x), x.shape[axis]))


def _by_steps(x, *, op, axis, reverse):
    combine, identity = (lax.add, 0) if op == "Cumsum" else (lax.mul, 1)
    return computations.scan(combine, x, identity, axis, reverse)


@decomposition("cumsum", dtypes=dtypes.COMPLEX)
def cumsum_complex(x, *, axis, reverse, **_):
    parts = [lax.cumsum(part, axis, reverse) for part in (lax.real(x), lax.imag(x))]
    return lax.complex(*parts)


@decomposition("cumprod", dtypes=dtypes.COMPLEX)
@decomposition("cumprod", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def cumprod_by_steps(x, *, axis, reverse, **_):
    return computations.scan(lax.mul, x, 1, axis, reverse)


@decomposition("cumlogsumexp", traits=Trait.PROMOTED)
def cumlogsumexp(x, *, axis, reverse, **_):
    """Low precision is accumulated in float32 and rounded once each."""
    wide = x.astype(np.float32) if x.dtype in dtypes.LOW_PRECISION else x
    if x.dtype in dtypes.COMPLEX:  # The imaginary part is between -pi and pi, also of one element.
        wide = jnp.logaddexp(wide, np.array(-np.inf, x.dtype))
    result = computations.scan(jnp.logaddexp, wide, -np.inf, axis, reverse)
    return result.astype(x.dtype)


def _cumulative_extremum(combine, identity, is_for_xla):
    """A decomposition of `cummax` or `cummin`; from the first NaN on all elements are NaN."""

    def decompose(x, *, axis, reverse, **_):
        # XLA would fuse the steps of our own scan, and then compute some of them repeatedly.
        if is_for_xla and isinstance(x.shape[axis], int):
            return lax.associative_scan(combine, x, axis=axis, reverse=reverse)
        return computations.scan(combine, x, identity(x.dtype), axis, reverse)

    return decompose


for _primitive, _combine, _identity in (("cummax", lax.max, lowest), ("cummin", lax.min, highest)):
    decomposition(_primitive, traits=Trait.SELECTS)(
        _cumulative_extremum(_combine, _identity, False)
    )
    decomposition(_primitive, target=XLA)(_cumulative_extremum(_combine, _identity, True))


on_promoted("cummax", "cummin", dtypes=(E8M0,))(narrow_numbers.reduced_from_infinity)


@on_promoted("cumlogsumexp", dtypes=NARROW)
def cumlogsumexp_narrow(x, *, primitive, dtypes, storages, **params):
    """XLA starts from an infinity; in a format in which that is NaN, all results are NaN."""
    if infinity_is_nan(dtypes[0]):
        return jnp.full_like(x, np.nan)
    return narrow_numbers.fit(primitive.bind(x, **params), dtypes[0], storages[0])
