"""Diffrax: differential equations, with steps that adapt, checkpoints and Brownian motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check

diffrax = pytest.importorskip("diffrax")

START = np.float32([1.0, 0.5])
RATES = np.float32([0.8, 0.4, 1.1, 0.3])


def lotka_volterra(t, y, rates):
    prey, predators = y
    a, b, c, d = rates
    return jnp.stack([a * prey - b * prey * predators, d * prey * predators - c * predators])


def test_steps_that_adapt():
    def solve(rates, start):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lotka_volterra),
            diffrax.Tsit5(),
            t0=0.0,
            t1=3.0,
            dt0=0.1,
            y0=start,
            args=rates,
            saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 3.0, 5)),
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-5),
            max_steps=64,
        )
        return solution.ys, solution.stats["num_accepted_steps"]

    check(solve, RATES, START)


def test_a_stiff_equation():
    """An implicit solver, which finds roots by optimistix and lineax in each step."""

    def solve(rate, start):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, rate: -rate * (y - jnp.cos(t))),
            diffrax.Kvaerno3(),
            0.0,
            1.0,
            0.05,
            start,
            args=rate,
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-4),
            max_steps=64,
        )
        return solution.ys

    check(solve, np.float32(30), START, tolerance=1e-3)


def test_noise():
    def solve(rates, words):
        brownian = diffrax.VirtualBrownianTree(
            0.0, 1.0, tol=0.05, shape=(2,), key=jax.random.wrap_key_data(words)
        )
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lotka_volterra),
            diffrax.ControlTerm(lambda t, y, rates: 0.1 * jnp.diag(y), brownian),
        )
        return diffrax.diffeqsolve(
            terms, diffrax.Euler(), 0.0, 1.0, 0.1, START, args=rates, max_steps=16
        ).ys

    check(solve, RATES, jax.random.key_data(jax.random.key(0)))


def test_the_adjoint_equation():
    def solve(rates, start):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lotka_volterra),
            diffrax.Dopri5(),
            0.0,
            1.0,
            0.1,
            start,
            args=rates,
            adjoint=diffrax.BacksolveAdjoint(),
            max_steps=32,
        ).ys

    check(solve, RATES, START)
