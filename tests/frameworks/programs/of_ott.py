"""OTT: optimal transport."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2)).astype(np.float32)
Y = RNG.normal(size=(5, 2)).astype(np.float32)


@program
def sinkhorn():
    pointcloud = pytest.importorskip("ott.geometry.pointcloud")
    linear = pytest.importorskip("ott.solvers.linear")

    def transport(x, y):
        found = linear.solve(pointcloud.PointCloud(x, y, epsilon=0.5), max_iterations=50)
        return found.matrix, found.reg_ot_cost

    return Program(transport, (X, Y), tolerance=1e-3)


@program
def soft_sort():
    soft_sort = pytest.importorskip("ott.tools.soft_sort")

    def sort(x):
        return soft_sort.sort(x, epsilon=0.1), soft_sort.ranks(jnp.abs(x), epsilon=0.1)

    return Program(sort, (X[:, 0],), tolerance=1e-3)


@program
def gromov_wasserstein():
    pointcloud = pytest.importorskip("ott.geometry.pointcloud")
    quadratic = pytest.importorskip("ott.solvers.quadratic")

    def transport(x, y):
        x, y = pointcloud.PointCloud(x), pointcloud.PointCloud(y)
        return quadratic.solve(x, y, epsilon=0.5, max_iterations=5).matrix

    return Program(transport, (X, Y), tolerance=1e-3)
