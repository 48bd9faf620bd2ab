"""Cumulative reductions along one axis."""

import functools

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.arrays import computations
from lowering.formats import narrow, rounding
from lowering.ops import cast, constant, dtypes, emit
from lowering.registry import Trait, decomposition, rule
from lowering.targets import XLA


@rule("cumsum", "cumprod")
def cumsum(ctx, x, *, axis, reverse, **_):
    """Integers wrap around. Low precision is accumulated in float32 and rounded once each."""
    op = "Cumsum" if ctx.eqn.primitive.name == "cumsum" else "Cumprod"
    scan = functools.partial(emit, op, modular=True, reverse=reverse)
    if x.dtype.as_numpy_dtype in dtypes.LOW_PRECISION:
        return cast(scan(cast(x, tf.float32), constant(axis, tf.int32)), x.dtype)
    return scan(x, constant(axis, tf.int32))


@decomposition("cumsum", dtypes=dtypes.COMPLEX)
def cumsum_complex(x, *, axis, reverse, **_):
    parts = [lax.cumsum(part, axis, reverse) for part in (lax.real(x), lax.imag(x))]
    return lax.complex(*parts)


@decomposition("cumprod", dtypes=dtypes.COMPLEX)
def cumprod_complex(x, *, axis, reverse, **_):
    return computations.scan(lax.mul, x, 1, axis, reverse)


@decomposition("cummax", traits=Trait.SELECTS)
def cummax(x, *, axis, reverse, **_):
    """NaN from the first NaN on."""
    return computations.scan(lax.max, x, _least(x.dtype), axis, reverse)


@decomposition("cummin", traits=Trait.SELECTS)
def cummin(x, *, axis, reverse, **_):
    """NaN from the first NaN on."""
    return computations.scan(lax.min, x, _greatest(x.dtype), axis, reverse)


@decomposition("cummax", target=XLA)
def cummax_xla(x, *, axis, reverse, **_):
    return _scan_xla(lax.max, x, _least(x.dtype), axis, reverse)


@decomposition("cummin", target=XLA)
def cummin_xla(x, *, axis, reverse, **_):
    return _scan_xla(lax.min, x, _greatest(x.dtype), axis, reverse)


def _scan_xla(combine, x, identity, axis, reverse):
    """XLA fuses the steps of a scan by blocks, and then computes some of them over and over."""
    if not isinstance(x.shape[axis], int):
        return computations.scan(combine, x, identity, axis, reverse)
    return lax.associative_scan(combine, x, axis=axis, reverse=reverse)


@decomposition("cumlogsumexp")
def cumlogsumexp(x, *, axis, reverse, **_):
    """Low precision is accumulated in float32 and rounded once each."""
    wide = x.astype(np.float32) if x.dtype in dtypes.LOW_PRECISION else x
    result = computations.scan(jnp.logaddexp, wide, -np.inf, axis, reverse)
    return result.astype(x.dtype)


@rule("cummax", "cummin", dtypes=dtypes.NARROW)
def cummax_narrow(ctx, x, **_):
    return narrow.from_infinity(ctx, x)


@rule("cumlogsumexp", dtypes=dtypes.NARROW)
def cumlogsumexp_narrow(ctx, x, **_):
    """XLA starts from an infinity; in a format in which that is NaN, nothing else comes out."""
    result = narrow.apply(ctx, x)
    return narrow.all_nan(result) if rounding.infinity_is_nan(ctx.out_aval.dtype) else result


def _least(dtype):
    if dtype == np.bool_:
        return False
    if np.issubdtype(dtype, np.integer):
        return np.iinfo(dtype).min
    return complex(-np.inf, -np.inf) if np.issubdtype(dtype, np.complexfloating) else -np.inf


def _greatest(dtype):
    if dtype == np.bool_:
        return True
    if np.issubdtype(dtype, np.integer):
        return np.iinfo(dtype).max
    return complex(np.inf, np.inf) if np.issubdtype(dtype, np.complexfloating) else np.inf
