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


NAMES = "asin acos atan asinh acosh atanh sinh cosh tan tanh".split()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_is_as_near_as_jax(name):
    """Each part is that of JAX, or nearer to the exact one: JAX loses digits of small numbers."""
    module = complex_inverse if name.startswith("a") else complex_math
    numbers = _numbers()
    actual = np.asarray(jax.jit(getattr(module, name))(numbers))
    expected = np.asarray(jax.jit(getattr(lax, name))(numbers))
    exact_fun = getattr(np, f"arc{name[1:]}" if name.startswith("a") else name)
    exact = exact_fun(numbers.astype(np.complex128))
    for part in ("real", "imag"):
        a, e, x = (getattr(values, part) for values in (actual, expected, exact))
        is_right = _is_near(a, e) | _is_near(a, x) | np.isnan(expected)
        np.testing.assert_array_equal(a[~is_right], e[~is_right])


def _is_near(x, y):
    return (x == y) | (abs(x - y) <= 1e-5 * abs(y) + 1e-37)
