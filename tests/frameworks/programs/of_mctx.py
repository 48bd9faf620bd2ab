"""mctx: Monte Carlo tree search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

ACTIONS, FEATURES = 4, 6


def _root_and_step(mctx, params):
    def evaluate(state):
        return state @ params["policy"], jnp.tanh(state @ params["value"])

    def step(params_, key, action, state):
        state = jnp.tanh(state @ params["next"] + params["of_action"][action])
        logits, value = evaluate(state)
        output = mctx.RecurrentFnOutput(
            reward=state[:, 0], discount=jnp.full_like(value, 0.9), prior_logits=logits, value=value
        )
        return output, state

    def root(observations):
        logits, value = evaluate(observations)
        return mctx.RootFnOutput(prior_logits=logits, value=value, embedding=observations)

    return root, step


def _arguments():
    rng = np.random.default_rng(0)
    shapes = {
        "policy": (FEATURES, ACTIONS),
        "value": (FEATURES,),
        "next": (FEATURES, FEATURES),
        "of_action": (ACTIONS, FEATURES),
    }
    params = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    observations = rng.normal(size=(2, FEATURES)).astype(np.float32)
    return params, observations, np.uint32([0, 1])


def _search(policy, **options):
    """A search with one of the policies of mctx, by its name."""
    mctx = pytest.importorskip("mctx")

    def search(params, observations, words):
        root, step = _root_and_step(mctx, params)
        found = getattr(mctx, policy)(
            params=(),
            rng_key=jax.random.wrap_key_data(words),
            root=root(observations),
            recurrent_fn=step,
            num_simulations=8,
            **options,
        )
        return found.action, found.action_weights, found.search_tree.node_values

    return Program(search, _arguments())


@program
def muzero():
    return _search("muzero_policy")


@program
def gumbel_muzero():
    return _search("gumbel_muzero_policy", max_num_considered_actions=3)
