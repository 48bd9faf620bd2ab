"""Lineax: linear solves by a primitive of its own, `linear_solve`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check

lx = pytest.importorskip("lineax")

MATRIX = np.float32([[4, 1, 0], [1, 3, -1], [0, -1, 5]])
RIGHT_SIDE = np.float32([1, -2, 3])

SOLVERS = {
    "chosen": lambda: lx.AutoLinearSolver(well_posed=None),
    "lu": lx.LU,
    "qr": lx.QR,
    "svd": lx.SVD,
    "cg": lambda: lx.CG(rtol=1e-6, atol=1e-6),
    "gmres": lambda: lx.GMRES(rtol=1e-6, atol=1e-6),
    "cholesky": lx.Cholesky,
    "tridiagonal": lx.Tridiagonal,
}
TAGS = {
    "cg": lx.positive_semidefinite_tag,
    "cholesky": lx.positive_semidefinite_tag,
    "tridiagonal": lx.tridiagonal_tag,
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name):
    def solve(matrix, b):
        operator = lx.MatrixLinearOperator(matrix, TAGS.get(name, ()))
        return lx.linear_solve(operator, b, SOLVERS[name]()).value

    check(solve, MATRIX, RIGHT_SIDE)


def test_mapped_solves_and_least_squares():
    def solve(matrices, b):
        operator = lx.MatrixLinearOperator(matrices)
        return lx.linear_solve(operator, b, lx.QR()).value

    matrices = np.stack([np.vstack([MATRIX, RIGHT_SIDE]), np.vstack([RIGHT_SIDE, MATRIX])])
    check(jax.vmap(solve), matrices, np.ones((2, 4), np.float32))


def test_an_operator_that_is_a_function():
    def solve(x, b):
        operator = lx.JacobianLinearOperator(lambda y, args: MATRIX @ y + 0.1 * jnp.sin(y), x)
        return lx.linear_solve(operator, b, lx.GMRES(rtol=1e-6, atol=1e-6)).value

    check(solve, np.float32([0.1, 0.2, 0.3]), RIGHT_SIDE)
