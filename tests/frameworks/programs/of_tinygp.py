"""tinygp: Gaussian processes."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

X = np.sort(np.random.default_rng(0).uniform(0, 5, 12)).astype(np.float32)
Y = np.sin(X)
PARAMS = {"amplitude": np.float32(1.2), "scale": np.float32(0.8), "noise": np.float32(0.1)}


@program
def regression():
    tinygp = pytest.importorskip("tinygp")

    def predict(params, x, y, at):
        kernel = params["amplitude"] * tinygp.kernels.Matern52(params["scale"])
        process = tinygp.GaussianProcess(kernel, x, diag=params["noise"])
        density, conditioned = process.condition(y, at)
        return density, conditioned.loc, conditioned.variance

    at = np.linspace(0, 5, 4, dtype=np.float32)
    return Program(predict, (PARAMS, X, Y, at), tolerance=1e-3, differentiable=True)


@program
def quasiseparable():
    """A process whose time is linear in the number of points, by scans."""
    tinygp = pytest.importorskip("tinygp")

    def density(params, x, y):
        kernel = tinygp.kernels.quasisep.Matern32(params["scale"], sigma=params["amplitude"])
        # By default tinygp calls back into Python to check that points are sorted, which compiled
        # code cannot do.
        process = tinygp.GaussianProcess(
            kernel, x, diag=params["noise"] + jnp.zeros_like(x), assume_sorted=True
        )
        return process.log_probability(y)

    return Program(density, (PARAMS, X, Y), tolerance=1e-3, differentiable=True)
