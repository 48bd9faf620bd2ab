"""Optimistix: roots, fixed points, minima and least squares, with implicit derivatives."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check

optx = pytest.importorskip("optimistix")

START = np.float32([0.5, -0.3])
WEIGHTS = np.float32([0.7, 1.3])


def solving(solve, solver, fun):
    """What a solver finds, as a function of the parameters of a problem."""
    return lambda weights, start: solve(fun, solver, start, args=weights, max_steps=64).value


def test_a_root():
    def fun(y, weights):
        return y - jnp.tanh(y * weights) * 0.5 - 0.1

    check(solving(optx.root_find, optx.Newton(rtol=1e-6, atol=1e-6), fun), WEIGHTS, START)


def test_a_fixed_point():
    def fun(y, weights):
        return jnp.cos(y * weights) * 0.5

    solver = optx.FixedPointIteration(rtol=1e-6, atol=1e-6)
    check(solving(optx.fixed_point, solver, fun), WEIGHTS, START)


def test_a_minimum():
    def fun(y, weights):
        return jnp.sum((y - weights) ** 2 * jnp.array([1.0, 3.0])) + 0.1 * jnp.sum(y**4)

    check(
        solving(optx.minimise, optx.BFGS(rtol=1e-5, atol=1e-5), fun), WEIGHTS, START, tolerance=1e-3
    )


def test_least_squares():
    times = jnp.linspace(0, 2, 9)

    def residual(y, weights):
        return y[0] * jnp.exp(-y[1] * times) - weights[0] * jnp.exp(-weights[1] * times)

    solver = optx.LevenbergMarquardt(rtol=1e-5, atol=1e-5)
    check(solving(optx.least_squares, solver, residual), WEIGHTS, START, tolerance=1e-3)
