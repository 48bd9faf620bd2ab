"""s2fft: Fourier transforms on the sphere."""

import numpy as np
import pytest

from tests.frameworks.programs import Program, program

BAND = 6


@program
def forward():
    pytest.importorskip("s2fft")
    spherical = pytest.importorskip("s2fft.transforms.spherical")
    signal = np.random.default_rng(0).normal(size=(2 * BAND, 2 * BAND - 1)).astype(np.float32)

    def transform(signal):
        # The samples leave the equator out. There the recursion divides by what is zero up to
        # rounding, and an ulp changes the result of JAX by 17 %.
        coefficients = spherical.forward_jax(signal, BAND, sampling="dh", reality=True)
        return coefficients.real, coefficients.imag

    return Program(transform, (signal,), tolerance=1e-3)
