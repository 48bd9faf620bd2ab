"""Cholesky decompositions and triangular systems in loops."""

import itertools

import jax
import numpy as np
import pytest
from jax import lax

from lowering.linalg import triangular

RNG = np.random.default_rng(0)


def matrix(*shape, dtype):
    real, imag = RNG.normal(size=(2, *shape))
    is_complex = np.issubdtype(dtype, np.complexfloating)
    return (real + 1j * imag if is_complex else real).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_cholesky(n, dtype):
    a = matrix(n, n, dtype=dtype)
    a = a @ a.conj().T + n * np.eye(n, dtype=dtype)
    expected = np.linalg.cholesky(a) if n else a
    np.testing.assert_allclose(jax.jit(triangular.cholesky)(a), expected, rtol=1e-4, atol=1e-5)


def test_a_matrix_that_is_not_positive_definite():
    assert np.isnan(triangular.cholesky(np.float32([[1, 2], [2, 1]]))[1, 1])


@pytest.mark.parametrize("flags", itertools.product([False, True], repeat=5))
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_solve(flags, dtype):
    names = "left_side lower transpose_a conjugate_a unit_diagonal".split()
    params = dict(zip(names, flags, strict=True))
    a = matrix(4, 4, dtype=dtype) + 4 * np.eye(4, dtype=dtype)
    b = matrix(*((4, 3) if params["left_side"] else (3, 4)), dtype=dtype)
    expected = lax.linalg.triangular_solve(a, b, **params)
    actual = jax.jit(lambda a, b: triangular.solve(a, b, **params))(a, b)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
