"""Reinterpretation of the bits of an array as another dtype."""

import functools

import numpy as np
from jax import lax

from harnesses.arguments import FLOAT, INTEGER, full_range, name
from harnesses.axes import axes, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(axes(0, 1))
def bitcast_convert_type():
    for dtype in INTEGER + FLOAT:
        for to in INTEGER + FLOAT:
            ratio = np.dtype(to).itemsize // np.dtype(dtype).itemsize
            shape = (3, 4) if ratio <= 1 else (3, 4, ratio)
            integer = np.dtype(f"i{np.dtype(dtype).itemsize}")
            args = (lambda rng, s=shape, i=integer, d=dtype: full_range(s, i)(rng).view(d),)
            fun = functools.partial(lax.bitcast_convert_type, new_dtype=to)
            yield Harness("bitcast_convert_type", f"{name(dtype)}_to_{name(to)}", fun, args)
