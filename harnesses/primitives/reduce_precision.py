"""Rounding to fewer bits of exponent and mantissa."""

import functools

import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import FLOAT, full_range, name, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses

_BITS = [
    (1, 0),
    (1, 3),
    (2, 1),
    (4, 3),
    (5, 2),
    (5, 10),
    (8, 0),
    (8, 7),
    (8, 23),
    (11, 52),
    (9, 20),
]


def _values(dtype):
    """Returns a maker of special values, random bits, powers of two, and ties of rounding."""

    def make(rng):
        bits = full_range((256,), np.dtype(f"i{np.dtype(dtype).itemsize}"))(rng).view(dtype)
        ties = 1 + np.arange(33) * 2.0 ** -np.arange(3, 36)
        scales = 2.0 ** np.arange(-17, 17)
        with np.errstate(over="ignore"):
            values = [ties.astype(dtype), scales.astype(dtype)]
        return np.concatenate([specials(dtype), bits, *values])

    return make


def _reduced(x, *, bits):
    return [lax.reduce_precision(x, exponent, mantissa) for exponent, mantissa in bits]


@harnesses
@symbolic(every_axis)
def reduce_precision():
    for dtype in FLOAT:
        bits = (*_BITS, (ml_dtypes.finfo(dtype).nexp, 1))
        fun = functools.partial(_reduced, bits=bits)
        yield Harness("reduce_precision", name(dtype), fun, (_values(dtype),))
    fun = functools.partial(lax.reduce_precision, exponent_bits=5, mantissa_bits=2)
    for shape in [(), (0, 3)]:
        values = np.ones(shape, np.float32)
        yield Harness("reduce_precision", f"shape={shape}", fun, (values,))
