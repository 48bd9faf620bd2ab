"""TensorFlow Probability on JAX: samplers, and a hidden Markov model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

SUBSTRATE = "tensorflow_probability.substrates.jax"


@program
def nuts():
    tfp = pytest.importorskip(SUBSTRATE)

    def sample(start, words):
        target = tfp.distributions.MultivariateNormalDiag(jnp.zeros(2), jnp.array([1.0, 2.0]))
        kernel = tfp.mcmc.NoUTurnSampler(target.log_prob, step_size=0.4, max_tree_depth=3)
        return tfp.mcmc.sample_chain(
            num_results=3,
            current_state=start,
            kernel=kernel,
            trace_fn=lambda _, results: results.leapfrogs_taken,
            seed=jax.random.wrap_key_data(words),
        )

    return Program(sample, (np.float32([0.5, -0.5]), np.uint32([0, 1])), tolerance=1e-3)


@program
def hidden_markov_model():
    tfp = pytest.importorskip(SUBSTRATE)

    def infer(logits, observations):
        model = tfp.distributions.HiddenMarkovModel(
            tfp.distributions.Categorical(logits=logits[0]),
            tfp.distributions.Categorical(logits=logits),
            tfp.distributions.Normal(jnp.arange(3.0), 1.0),
            num_steps=6,
        )
        marginals = model.posterior_marginals(observations)
        return model.log_prob(observations), marginals.logits, model.posterior_mode(observations)

    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 3)).astype(np.float32)
    return Program(infer, (logits, rng.uniform(0, 2, 6).astype(np.float32)))
