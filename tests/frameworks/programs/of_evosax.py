"""evosax: evolution strategies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program


def _evolution(name):
    algorithms = pytest.importorskip("evosax.algorithms")
    strategy = getattr(algorithms, name)(population_size=8, solution=jnp.zeros(3))

    def evolve(mean, words):
        params = strategy.default_params
        key, of_init = jax.random.split(jax.random.wrap_key_data(words))

        def generation(state, key):
            of_ask, of_tell = jax.random.split(key)
            population, state = strategy.ask(of_ask, state, params)
            fitness = jnp.sum((population - 1) ** 2, axis=-1)
            state, _ = strategy.tell(of_tell, population, fitness, state, params)
            return state, fitness

        state = strategy.init(of_init, mean, params)
        state, fitness = jax.lax.scan(generation, state, jax.random.split(key, 4))
        return strategy.get_mean(state), fitness

    return Program(evolve, (np.float32([0.5, -0.5, 2]), np.uint32([0, 1])), tolerance=1e-3)


# CMA_ES samples along eigenvectors, which may have other signs in TensorFlow.
@program
def sep_cma_es():
    return _evolution("Sep_CMA_ES")


@program
def open_es():
    return _evolution("Open_ES")
