"""Matrices, random bits and other arrays whose sizes are symbolic parameters.

Each function is lowered once, with dimensions that TensorFlow does not know, and run at several
sizes. Every case is one that JAX can trace.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.rules.symbolic import Case, check, table


def _matmul(*factors):
    return functools.reduce(functools.partial(jnp.matmul, precision="highest"), factors)


def _adjoint(x):
    return jnp.swapaxes(x, -1, -2).conj()


def _positive(x):
    return _matmul(x, _adjoint(x)) + 3 * jnp.eye(x.shape[-1], dtype=x.dtype)


def _eig(x):
    w, v = jnp.linalg.eig(x)
    return jnp.sort(jnp.abs(w)), _matmul(x, v) - v * w[..., None, :]


def _schur(x):
    t, z = lax.linalg.schur(x)
    return _matmul(z, t, _adjoint(z)), _matmul(z, _adjoint(z))


def _eigh(x):
    w, v = jnp.linalg.eigh(_positive(x))
    return w, _matmul(v * w[..., None, :], _adjoint(v))


def _svd(x, full_matrices):
    u, s, vh = jnp.linalg.svd(x, full_matrices=full_matrices)
    k = s.shape[-1]
    return s, _matmul(u[..., :k] * s[..., None, :], vh[..., :k, :]), _matmul(u, _adjoint(u))


def _qr(x, pivoting, full_matrices):
    q, r, *order = lax.linalg.qr(x, pivoting=pivoting, full_matrices=full_matrices)
    return _matmul(q, r), _matmul(_adjoint(q), q), *order


def _tridiagonal(x):
    return lax.linalg.tridiagonal(_positive(x))[1:]


def _tridiagonal_solve(x):
    row = x[..., 0, :]
    return lax.linalg.tridiagonal_solve(row * 0 + 0.1, row * 0 + 2, row * 0 - 0.1, x)


def _triangular_solve(x):
    return lax.linalg.triangular_solve(_positive(x), x, left_side=True, lower=True)


def _reflectors(x):
    return lax.linalg.householder_product(x / 4, x[..., 0, :] / 4)


def _permutation(x):
    _, pivots, order = lax.linalg.lu(x)
    return lax.linalg.lu_pivots_to_permutation(pivots, x.shape[-1]), order


def _matrices():
    square = {
        "eigenvalues": lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))),
        "eig": _eig,
        "schur": _schur,
        "eigh": _eigh,
        "lu": lax.linalg.lu,
        "solve": lambda x: jnp.linalg.solve(_positive(x), x[..., :1]),
        "determinant": jnp.linalg.det,
        "cholesky": lambda x: lax.linalg.cholesky(_positive(x)),
        "hessenberg": lax.linalg.hessenberg,
        "tridiagonal": _tridiagonal,
        "triangular_solve": _triangular_solve,
        "tridiagonal_solve": _tridiagonal_solve,
        "householder_product": _reflectors,
        "permutation": _permutation,
        "svd": functools.partial(_svd, full_matrices=True),
    }
    for name, fun in square.items():
        sizes = (3, 5) if name == "tridiagonal_solve" else (1, 4)
        yield name, Case(fun, ("n, n",), sizes)
        yield f"{name}_batch", Case(fun, ("b, n, n",), (3,), np.complex64)
    for name, fun in (
        ("lu", lax.linalg.lu),
        ("qr", functools.partial(_qr, pivoting=False, full_matrices=False)),
        ("qr_full", functools.partial(_qr, pivoting=False, full_matrices=True)),
        ("qr_pivoted", functools.partial(_qr, pivoting=True, full_matrices=False)),
        ("qr_pivoted_full", functools.partial(_qr, pivoting=True, full_matrices=True)),
        ("svd", functools.partial(_svd, full_matrices=False)),
        ("svd_full", functools.partial(_svd, full_matrices=True)),
    ):
        yield f"{name}_rectangle", Case(fun, ("m, n",), (2, 4))


def _random():
    def draw(impl, sample):
        return lambda x: sample(jax.random.key(3, impl=impl), x.shape)

    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        for name, sample in (
            ("bits", jax.random.bits),
            ("normal", jax.random.normal),
            ("gamma", lambda key, shape: jax.random.gamma(key, 2.0, shape)),
            ("split", lambda key, shape: jax.random.key_data(jax.random.split(key, shape[0]))),
        ):
            yield f"{impl}_{name}", Case(draw(impl, sample), ("n, 3",), (1, 2, 5))

    def generate(algorithm, dtype):
        key = np.arange(1, 5, dtype=np.uint32)
        return lambda x: lax.rng_bit_generator(key, x.shape, dtype, algorithm)

    for algorithm in lax.RandomAlgorithm.__members__.values():
        for spec in ("n", "n, 3", "2, n", "m, n", "m, 3, n"):
            name = f"{algorithm.name}_{spec}"
            yield name, Case(generate(algorithm, np.uint32), (spec,), (1, 3, 4, 7))
        for dtype in (np.uint8, np.uint64):
            case = Case(generate(algorithm, dtype), ("m, n",), (1, 3, 4), x64=dtype == np.uint64)
            yield f"{algorithm.name}_{np.dtype(dtype).name}", case


def _others():
    yield "cumsum", Case(lambda x: lax.cumsum(x, axis=1), ("2, n",))
    yield "cummax", Case(lambda x: lax.cummax(x, axis=1, reverse=True), ("2, n",))
    yield "cumlogsumexp", Case(lambda x: lax.cumlogsumexp(x, axis=1), ("2, n",))
    yield "top_k", Case(lambda x: lax.top_k(x, x.shape[1] // 2 + 1), ("2, n",))
    yield "approx_max_k", Case(lambda x: lax.approx_max_k(x, x.shape[1]), ("2, n",))
    yield "first", Case(lambda x: (x[:, :1], x[:, -1]), ("2, n",))
    yield "split", Case(lambda x: lax.split(x, (x.shape[1] - 1, 1), axis=1), ("2, n",))
    yield "reverse", Case(lambda x: x[:, ::-1][:, : x.shape[1] // 2], ("2, n",))
    yield "rfft", Case(lambda x: jnp.fft.rfft(x), ("2, n",), (2, 3, 5))

    def block(x):
        return lax.dynamic_slice(x, (0, jnp.int32(x[0, 0])), (2, x.shape[1] // 2 + 1))

    yield "dynamic_slice", Case(block, ("2, n",))

    def gather(x):
        numbers = lax.GatherDimensionNumbers((1, 2), (), (1,))
        return lax.gather(x, np.array([[0], [1]]), numbers, (2, x.shape[1] // 2 + 1))

    yield "gather", Case(gather, ("2, n",))
    yield "iota", Case(lambda x: lax.broadcasted_iota(np.int32, (x.shape[1], 3), 0), ("2, n",))
    yield "argmax", Case(lambda x: (x.argmax(0), x.argmin()), ("m, n",))


CASES = table(_matrices, _random, _others)


@pytest.mark.parametrize("name", CASES)
def test_symbolic_sizes(name):
    check(CASES[name])
