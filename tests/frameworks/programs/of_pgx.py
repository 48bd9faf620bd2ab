"""pgx: games."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program


def _game(name, steps):
    """A game between players that take the legal move of the largest random score."""
    pgx = pytest.importorskip("pgx")
    env = pgx.make(name)

    def play(scores, words):
        of_start, key = jax.random.split(jax.random.wrap_key_data(words))

        def move(state, inputs):
            scores, key = inputs
            action = jnp.argmax(jnp.where(state.legal_action_mask, scores, -jnp.inf))
            state = env.step(state, action, key)
            return state, (action, state.rewards, state.terminated)

        state = env.init(of_start)
        state, history = jax.lax.scan(move, state, (scores, jax.random.split(key, steps)))
        return state.observation, history

    scores = np.random.default_rng(0).uniform(size=(steps, env.num_actions)).astype(np.float32)
    return Program(play, (scores, np.uint32([0, 1])))


@program
def connect_four():
    return _game("connect_four", 12)


@program
def backgammon():
    return _game("backgammon", 3)


@program
def go():
    return _game("go_9x9", 4)
