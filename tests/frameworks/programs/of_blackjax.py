"""blackjax: samplers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

ARGS = (np.float32([0.5, -0.5]), np.uint32([0, 1]))


def _log_density(x):
    return -0.5 * jnp.sum(x**2 * jnp.array([1.0, 4.0])) - 0.1 * jnp.sum(x**4)


def _chain(algorithm, start, words, steps):
    keys = jax.random.split(jax.random.wrap_key_data(words), steps)

    def step(state, key):
        state, _ = algorithm.step(key, state)
        return state, state.position

    return jax.lax.scan(step, algorithm.init(start), keys)[1]


@program
def hmc():
    blackjax = pytest.importorskip("blackjax")

    def sample(start, words):
        algorithm = blackjax.hmc(_log_density, 0.3, jnp.ones(2), num_integration_steps=4)
        return _chain(algorithm, start, words, 4)

    return Program(sample, ARGS, tolerance=1e-3)


@program
def nuts():
    blackjax = pytest.importorskip("blackjax")

    def sample(start, words):
        algorithm = blackjax.nuts(_log_density, 0.3, jnp.ones(2), max_num_doublings=3)
        return _chain(algorithm, start, words, 3)

    return Program(sample, ARGS, tolerance=1e-3)


@program
def elliptical_slice():
    blackjax = pytest.importorskip("blackjax")

    def sample(start, words):
        algorithm = blackjax.elliptical_slice(_log_density, mean=jnp.zeros(2), cov=jnp.eye(2))
        return _chain(algorithm, start, words, 3)

    return Program(sample, ARGS, tolerance=1e-3)
