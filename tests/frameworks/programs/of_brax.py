"""brax: a physics engine, and a policy that acts in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program


@program
def policy_in_an_environment():
    envs = pytest.importorskip("brax.envs")
    networks = pytest.importorskip("brax.training.agents.ppo.networks")
    env = envs.get_environment("inverted_pendulum", backend="generalized")
    ppo = networks.make_ppo_networks(
        env.observation_size,
        env.action_size,
        policy_hidden_layer_sizes=(8,),
        value_hidden_layer_sizes=(8,),
    )
    params = ppo.policy_network.init(jax.random.key(0))

    def rollout(params, words):
        of_start, key = jax.random.split(jax.random.wrap_key_data(words))
        act = networks.make_inference_fn(ppo)((None, params))

        def step(state, key):
            action, _ = act(state.obs, key)
            state = env.step(state, action)
            return state, (state.reward, jnp.sum(action))

        state, history = jax.lax.scan(step, env.reset(of_start), jax.random.split(key, 3))
        return state.obs, history

    return Program(rollout, (params, np.uint32([0, 1])), tolerance=1e-3)
