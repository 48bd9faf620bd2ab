"""jaxopt: minimizers, roots and projections."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3)).astype(np.float32)
Y = (X @ np.float32([1, -2, 0.5])).astype(np.float32)


def _loss(w, x, y):
    return jnp.mean((x @ w - y) ** 2) + 0.1 * jnp.sum(w**2)


@program
def lbfgs():
    jaxopt = pytest.importorskip("jaxopt")

    def fit(start, x, y):
        found = jaxopt.LBFGS(_loss, maxiter=10).run(start, x, y)
        return found.params, found.state.value

    return Program(fit, (np.ones(3, np.float32), X, Y), tolerance=1e-3)


@program
def projected_gradient():
    jaxopt = pytest.importorskip("jaxopt")

    def fit(start, x, y):
        project = jaxopt.projection.projection_simplex
        solver = jaxopt.ProjectedGradient(_loss, project, maxiter=20)
        return solver.run(start, 1.0, x, y).params

    return Program(fit, (np.full(3, 1 / 3, np.float32), X, Y), tolerance=1e-3)


@program
def implicit_gradient():
    """The derivative of a minimum by what it depends on, by the implicit function theorem."""
    jaxopt = pytest.importorskip("jaxopt")

    def derivative(x, y):
        def minimum(y):
            solver = jaxopt.GradientDescent(_loss, maxiter=50, implicit_diff=True)
            return solver.run(jnp.zeros(3), x, y).params.sum()

        return jax.grad(minimum)(y)

    return Program(derivative, (X, Y), tolerance=1e-3)


@program
def bisection():
    jaxopt = pytest.importorskip("jaxopt")

    def root(c):
        solver = jaxopt.Bisection(lambda x, c: x**3 - c, 0.0, 3.0, maxiter=30, check_bracket=False)
        return jax.vmap(lambda c: solver.run(None, c).params)(c)

    return Program(root, (np.float32([1, 2, 8]),))
