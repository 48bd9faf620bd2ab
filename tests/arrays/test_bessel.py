"""Modified Bessel functions of float32."""

import jax
import numpy as np
import pytest

from lowering.arrays import bessel


@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_values(name):
    sizes = np.concatenate([np.linspace(0, 20, 400), 10.0 ** np.arange(-20, 38)])
    x = np.concatenate([-sizes, sizes]).astype(np.float32)
    expected = getattr(jax.scipy.special, name)(x)
    np.testing.assert_allclose(getattr(bessel, name)(x), expected, rtol=2e-6)
