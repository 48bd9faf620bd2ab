"""Quotients of complex numbers are XLA's, the signs of zeros and infinities included."""

import itertools

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering

_PARTS = (0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan)


def _operands(dtype):
    numbers = [complex(a, b) for a, b in itertools.product(_PARTS, repeat=2)]
    return np.array(list(itertools.product(numbers, repeat=2)), dtype).T


def _parts(z):
    """The real and imaginary parts; NaN has no sign."""
    parts = np.stack([np.real(z), np.imag(z)])
    return np.where(np.isnan(parts), np.nan, parts)


@pytest.mark.parametrize("jit_compile", [None, False, True], ids=["eager", "graph", "compiled"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_quotients_of_special_numbers(dtype, jit_compile):
    with jax.enable_x64(True):
        x, y = _operands(dtype)
        divide = lowering.convert(lax.div, target="tf")
        if jit_compile is not None:
            divide = tf.function(divide, autograph=False, jit_compile=jit_compile)
        expected, found = _parts(jax.jit(lax.div)(x, y)), _parts(divide(x, y).numpy())
        epsilon = np.finfo(dtype).eps
        # The difference of equal products is zero, or the error of one of them.
        np.testing.assert_allclose(found, expected, 2 * epsilon, atol=epsilon)
        zeros = (expected == 0) & (found == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))
