"""s2fft: Fourier transforms on the sphere."""

import numpy as np
import pytest

from tests.frameworks.programs import Program, program

BAND = 6


def _transforms():
    pytest.importorskip("s2fft")
    return pytest.importorskip("s2fft.transforms.spherical")


@program
def forward():
    spherical = _transforms()
    signal = np.random.default_rng(0).normal(size=(BAND, 2 * BAND - 1)).astype(np.float32)

    def transform(signal):
        coefficients = spherical.forward_jax(signal, BAND, reality=True)
        return coefficients.real, coefficients.imag

    return Program(transform, (signal,), tolerance=1e-3)


@program
def there_and_back():
    spherical = _transforms()
    signal = np.random.default_rng(0).normal(size=(BAND, 2 * BAND - 1)).astype(np.float32)

    def project(signal):
        coefficients = spherical.forward_jax(signal, BAND)
        return spherical.inverse_jax(coefficients, BAND).real

    return Program(project, (signal,), tolerance=1e-3)
