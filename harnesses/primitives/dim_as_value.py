"""Primitives that return the size of a dimension. Symbolic sizes are tested in `tests/`."""

import numpy as np

from harnesses.arguments import random
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses
from lowering import jax_compat


@harnesses
@symbolic(every_axis)
def dimension_size():
    bind = jax_compat.cpu_primitive("dimension_size").bind
    fun = lambda x: x * bind(x, dimension=1).astype(x.dtype)  # noqa: E731
    yield Harness("dimension_size", "known", fun, (random((2, 3), np.float32),))
