"""Functions of complex numbers that are composed of real ones, against JAX's own."""

import jax
import numpy as np
import pytest
from jax import lax

from lowering.arrays import complex_inverse, complex_math

_SIZES = [0, 0.25, 0.5, 0.6, 0.99999994, 1, 1.0000001, 1.4, 2, 40, 1e-3, 1e-10, 1e-25, 1e10, 1e25]
_PARTS = np.float32([sign * size for size in (*_SIZES, 3e38, np.inf) for sign in (1, -1)])


def _numbers() -> np.ndarray:
    """All combinations of special parts, and random numbers of all magnitudes."""
    generator = np.random.default_rng(0)
    sizes = 10 ** generator.uniform(-5, 5, [2, 2000])
    real, imag = (generator.normal(size=[2, 2000]) * sizes).astype(np.float32)
    special = [complex(a, b) for a in _PARTS for b in _PARTS]
    return np.concatenate([np.array(special, np.complex64), real + 1j * imag])


def _check(fun, numbers, tolerance):
    expected = np.asarray(jax.jit(getattr(lax, fun.__name__))(numbers))
    actual = np.asarray(jax.jit(fun)(numbers))
    is_number = ~np.isnan(expected)
    for part in ("real", "imag"):
        e, a = getattr(expected, part)[is_number], getattr(actual, part)[is_number]
        np.testing.assert_allclose(a, e, tolerance, 1e-37)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_inverse(name):
    _check(getattr(complex_inverse, name), _numbers(), 3e-6)


@pytest.mark.parametrize("name", ["tan", "tanh"])
def test_tangents(name):
    _check(getattr(complex_math, name), _numbers(), 3e-6)


@pytest.mark.parametrize("name", ["sinh", "cosh"])
def test_sines(name):
    """JAX's own lose digits of small numbers."""
    fun, numbers = getattr(complex_math, name), _numbers()
    is_large = (abs(numbers.real) > 0.5) | (numbers.real == 0)
    _check(fun, numbers[is_large], 3e-6)
    small = numbers[~is_large & (abs(numbers.imag) < 1e5)]
    exact = getattr(np, name)(small.astype(np.complex128))
    np.testing.assert_allclose(np.asarray(jax.jit(fun)(small)), exact, 3e-6, 1e-37)
