"""Primitives that JAX refuses to compile, where it does not."""

import numpy as np
from jax.experimental import checkify

from harnesses.harness import Harness, harnesses


@harnesses
def check():
    def fun(x):
        checkify.debug_check(x.sum() > 0, "negative")
        return x + 1

    # Without checkify such a check is left out, and one that is not for debugging is an error.
    yield Harness("check", "debug", fun, (-np.ones(3, np.float32),))
