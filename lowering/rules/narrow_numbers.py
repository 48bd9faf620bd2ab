"""Numbers of eight bits or fewer, in storage dtypes: see `arrays.narrow_numbers`."""

import ml_dtypes
import tensorflow as tf

from lowering.formats import rounding
from lowering.ops import constant, dtypes
from lowering.registry import Trait, rule
from lowering.rules.convert_element_type import saturate


@rule("fit", held=True, traits=Trait.ELEMENTWISE)
def fit(ctx, x, *, dtype, storage):
    to = dtypes.to_tf(storage)
    if x.dtype.is_floating and to.is_integer:
        return saturate(x, to, ml_dtypes.iinfo(dtype))
    return rounding.narrow_to(x, dtype)


@rule("to_bits", held=True, traits=Trait.ELEMENTWISE)
def to_bits(ctx, x, *, dtype):
    return rounding.to_bits(x, dtype)


@rule("from_bits", held=True, traits=Trait.ELEMENTWISE)
def from_bits(ctx, bits, *, dtype, storage):
    return rounding.from_bits(bits, dtype, storage)


@rule("widen", keep_constants=True, held=True, traits=Trait.NOT_FOLDED)
def widen(ctx, x, *, storage):
    """The cast of a constant, which keeps its dtype in the graph."""
    return tf.cast(constant(x), dtypes.to_tf(storage))
