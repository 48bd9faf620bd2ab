"""Functions of complex numbers that are composed of real ones, against JAX's own."""

import jax
import numpy as np
import pytest
from jax import lax

from lowering.arrays import complex_inverse, complex_math

_SIZES = [0, 0.25, 0.5, 0.6, 0.99999994, 1, 1.0000001, 1.4, 2, 40, 1e-3, 1e-10, 1e-25, 1e10, 1e25]
_PARTS = np.float32([sign * size for size in (*_SIZES, 3e38, np.inf) for sign in (1, -1)])
# A dtype with more digits, and how near results are.
_PRECISION = {np.complex64: (np.complex128, 1e-5), np.complex128: (np.clongdouble, 1e-13)}


def _numbers(dtype: type) -> np.ndarray:
    """All combinations of special parts, and random numbers of all magnitudes."""
    generator = np.random.default_rng(0)
    sizes = 10 ** generator.uniform(-5, 5, [2, 2000])
    real, imag = (generator.normal(size=[2, 2000]) * sizes).astype(dtype(0).real.dtype)
    special = [complex(a, b) for a in _PARTS for b in _PARTS]
    return np.concatenate([np.array(special, dtype), real + 1j * imag])


NAMES = "asin acos atan asinh acosh atanh sinh cosh tan tanh".split()


@pytest.mark.parametrize("dtype", _PRECISION)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_is_as_near_as_jax(name, dtype):
    """Each part is that of JAX, or nearer to the exact one: JAX loses digits of small numbers."""
    module = complex_inverse if name.startswith("a") else complex_math
    numbers = _numbers(dtype)
    with jax.enable_x64(True):
        actual = np.asarray(jax.jit(getattr(module, name))(numbers))
        expected = np.asarray(jax.jit(getattr(lax, name))(numbers))
    assert actual.dtype == dtype
    wider, relative = _PRECISION[dtype]
    exact_fun = getattr(np, f"arc{name[1:]}" if name.startswith("a") else name)
    exact = exact_fun(numbers.astype(wider))
    for part in ("real", "imag"):
        a, e, x = (getattr(values, part) for values in (actual, expected, exact))
        is_right = _is_near(a, e, relative) | _is_near(a, x, relative) | np.isnan(expected)
        np.testing.assert_array_equal(a[~is_right], e[~is_right])


def _is_near(x, y, relative):
    return (x == y) | (abs(x - y) <= relative * abs(y) + 1e-37)
