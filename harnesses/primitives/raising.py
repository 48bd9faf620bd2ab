"""Primitives that JAX normally refuses to compile, in cases in which it compiles them."""

import numpy as np
from jax.experimental import checkify

from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(every_axis)
def check():
    def fun(x):
        checkify.debug_check(x.sum() > 0, "negative")
        return x + 1

    # Outside of checkify, JAX removes a debug check. Other checks are an error there.
    yield Harness("check", "debug", fun, (-np.ones(3, np.float32),))
