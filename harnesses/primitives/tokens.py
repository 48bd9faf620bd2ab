"""Tokens, which JAX uses to order side effects."""

import numpy as np
from jax import lax

from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(every_axis)
def tokens():
    def fun(x):
        lax.after_all(lax.create_token(), lax.create_token())
        return x + 1

    for primitive in ("create_token", "after_all"):
        yield Harness(primitive, "unused", fun, (np.arange(3),))
