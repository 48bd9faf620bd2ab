"""Numbers of eight bits or fewer, in storage dtypes: see `arrays.narrow_numbers`."""

import functools

import jax
import ml_dtypes
import numpy as np
import tensorflow as tf

from lowering.arrays import narrow_numbers
from lowering.narrow_formats import E8M0, width
from lowering.ops import cast, constant, dtypes, emit, memo
from lowering.ops.casts import widened
from lowering.registry import Trait, rule
from lowering.rules.convert_element_type import saturate
from lowering.targets import Mode
from lowering.tensors import rounding


@rule("fit", in_storage=True, traits=Trait.ELEMENTWISE)
def fit(ctx, x, *, dtype, storage):
    """A conversion, which rounds once; from floats to integers it saturates, and NaN gives zero."""
    to = dtypes.to_tf(storage)
    if x.dtype.is_complex:
        x = emit("Real", x, Tout=x.dtype.real_dtype)
    if x.dtype.is_floating and to.is_integer:
        return saturate(x, to, ml_dtypes.iinfo(dtype))
    if x.dtype not in (tf.float32, tf.float64):
        x = cast(x, to)
    if dtype != E8M0:
        return rounding.narrow_to(x, dtype)
    aval = jax.ShapeDtypeStruct(ctx.in_avals[0].shape, x.dtype.as_numpy_dtype)
    return ctx.lower(narrow_numbers.rounded_to_power, x, avals=[aval])


@rule("from_bits", in_storage=True, traits=Trait.ELEMENTWISE)
def from_bits(ctx, bits, *, dtype, storage):
    table = constant(_numbers(dtype).astype(storage))
    return emit("GatherV2", table, cast(bits, tf.int32), constant(0, np.int32))


@functools.cache
def _numbers(dtype):
    """All numbers of a floating-point dtype of eight bits or fewer, in the order of their bits."""
    return np.arange(1 << width(dtype), dtype=np.uint8).view(dtype).astype(np.float64)


@rule("widen", keep_constants=True, in_storage=True, traits=Trait.NOT_FOLDED)
def widen(ctx, x, *, storage):
    """The cast of a constant, which keeps its dtype in the graph; one for all that use it."""
    narrow, to = constant(x), dtypes.to_tf(storage)
    if ctx.mode is Mode.EAGER:
        return widened(narrow, to)

    def make():
        with tf.control_dependencies(None):
            return widened(narrow, to)

    return memo.once(("widened", id(x), to), make, x)
