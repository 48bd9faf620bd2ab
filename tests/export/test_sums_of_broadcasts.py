"""Sums of broadcasts are over the axes that the program names, whichever axes the operand has."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

# The shape of the operand, that of the broadcast, and which of its axes are the operand's.
BROADCASTS = [
    ((2, 3), (2, 2, 3), (1, 2)),
    ((2, 3), (2, 3, 3), (0, 1)),
    ((3,), (3, 2, 3), (2,)),
    ((2, 1), (2, 2, 3), (1, 2)),
    ((), (2, 3), ()),
]
# The converter moves broadcasts past them.
ELEMENTWISE = [lambda x: x, lambda x: 2 * x + 1]


def _sets(count):
    return [s for k in range(1, count + 1) for s in itertools.combinations(range(count), k)]


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_sums_of_broadcasts(dtype):
    # Each has an input of its own, as a broadcast that is used twice stays in its place.
    cases = [(*b, fun, s) for b in BROADCASTS for fun in ELEMENTWISE for s in _sets(len(b[1]))]
    args = [np.arange(np.prod(c[0], dtype=int)).reshape(c[0]).astype(dtype) for c in cases]

    def run(*xs):
        return [
            jnp.sum(fun(lax.broadcast_in_dim(x, wide, axes)), s)
            for x, (_, wide, axes, fun, s) in zip(xs, cases, strict=True)
        ]

    export.to_tflite(run, tuple(args))
