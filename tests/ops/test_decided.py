"""Whether bools, cast to numbers, are below zero is decided by an op that TF Lite lacks."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

B = np.array([[True, False, True]])


def number(b):
    return b.astype(jnp.int32)


@pytest.mark.parametrize(
    "fun",
    [
        lambda b: number(b) >= 0,
        lambda b: b.astype(jnp.float32) < 0,
        lambda b: number(b) < 0,
        lambda b: jnp.int32(0) <= number(b),
        lambda b: (number(b) > 0, number(b) <= 0),
        lambda b: number(b) >= np.zeros((2, 3), np.int32),
        lambda b: number(b) >= np.array([0, 1, 2]),
        lambda b: number(b).reshape(3) >= 0,
        lambda b: number(b).T < 0,
        lambda b: jnp.broadcast_to(number(b)[:, None], (1, 2, 3)) >= 0,
        lambda b: lax.shift_left(b.astype(jnp.uint8), b.astype(jnp.uint8)),
        lambda b: lax.shift_right_logical(number(b), number(b)),
    ],
)
def test_comparisons_of_bools_with_zero(fun):
    assert export.to_tflite(fun, (B,))
